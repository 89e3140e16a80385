package main

import (
	"github.com/datalink-go/datalink/plugins/hbase/internal/reader"
	"github.com/datalink-go/datalink/sdk"
)

// ReaderConfig are the options of the reader.
type ReaderConfig struct {
	Cluster
	Tables   map[string]reader.Table `config:"tables" doc:"by the table's name in HBase: how its rows are given; without any, discover proposes them and nothing is read"`
	Start    string                  `config:"start" default:"snapshot" enum:"snapshot|latest" doc:"without progress: scan the tables first, or begin with changes from now on"`
	Row      string                  `config:"row" default:"current" enum:"current|change" doc:"what a change gives: the row as it is now, read again, or the values that were written and the other columns as unchanged"`
	Scope    string                  `config:"replicationScope" default:"set" enum:"set|demand" doc:"families whose changes are not replicated: change the table, or stop"`
	Serial   bool                    `config:"serial" default:"true" doc:"HBase keeps the order of a region's changes over moves and splits, at the price of waiting for them"`
	Listen   string                  `config:"listen" default:"127.0.0.1:0" doc:"address on which changes are taken from region servers"`
	Host     string                  `config:"host" doc:"name by which region servers reach this worker; left out = the one of listen"`
	PeerZK   string                  `config:"peerZooKeeper" doc:"ZooKeeper where this worker registers; left out = zookeeper"`
	PeerNode string                  `config:"peerParent" doc:"znode under which it registers, which must not be that of a cluster; left out = /datalink/TASK"`
	Peer     string                  `config:"peer" doc:"id of the replication peer; left out = datalink_TASK"`
	Shared   bool                    `config:"sharedPeer" default:"false" doc:"other tasks register under the same peerParent and get a part of the changes each; only towards writers of the level versioned"`
	ID       string                  `config:"clusterId" doc:"UUID that sources know this worker by; left out = made of the task's uid"`
	NotFrom  sdk.Strings             `config:"notFrom" default:"[]" doc:"UUIDs of clusters whose changes are left out, for two-way set-ups: those that the changes would go back to"`
	Scanners int                     `config:"scanners" default:"4" min:"1" max:"64" doc:"regions that are scanned at a time"`
	Window   sdk.ByteSize            `config:"window" default:"128MiB" doc:"what region servers may have sent that is not durable at the writers; beyond it they are told to come again"`
}

// Validate checks what concerns more than one option.
func (c *ReaderConfig) Validate() []sdk.Problem {
	p := c.validate()
	if c.ZooKeeper == "" && c.PeerZK == "" {
		p = append(p, sdk.Problem{Path: "peerZooKeeper", Expected: "host:port", Message: "replication finds this worker through ZooKeeper"})
	}
	if c.PeerNode != "" && c.PeerNode == c.Parent {
		p = append(p, sdk.Problem{Path: "peerParent", Found: c.PeerNode, Expected: "a znode of its own", Message: "it is that of the cluster"})
	}
	return p
}

func openReader(env sdk.Env, cfg ReaderConfig) (*reader.Reader, error) {
	client, err := cfg.dial(env)
	if err != nil {
		return nil, err
	}
	zk := cfg.PeerZK
	if zk == "" {
		zk = cfg.ZooKeeper
	}
	r, err := reader.New(reader.Config{
		Tables: cfg.Tables, Start: cfg.Start, Row: cfg.Row, Scope: cfg.Scope, Shared: cfg.Shared, ClusterID: cfg.ID, NotFrom: cfg.NotFrom,
		Scanners: cfg.Scanners, Switches: reader.FromEnv(), Serial: cfg.Serial, Listen: cfg.Listen, Host: cfg.Host,
		ZooKeeper: zk, Parent: cfg.PeerNode, Peer: cfg.Peer, Window: int(cfg.Window), Task: env.Task, Log: env.Log,
	}, client)
	if err != nil {
		client.Close()
		return nil, err
	}
	return r, nil
}
