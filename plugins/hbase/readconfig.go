package main

import (
	"github.com/datalink-go/datalink/plugins/hbase/internal/reader"
	"github.com/datalink-go/datalink/sdk"
)

// ReaderConfig are the options of the reader.
type ReaderConfig struct {
	Cluster
	Tables   map[string]reader.Table `config:"tables" required:"true" doc:"by the table's name in HBase: how its rows are given"`
	Start    string                  `config:"start" default:"snapshot" enum:"snapshot|latest" doc:"without progress: scan the tables first, or begin with changes from now on"`
	Scope    string                  `config:"replicationScope" default:"set" enum:"set|demand" doc:"families whose changes are not replicated: change the table, or stop"`
	Serial   bool                    `config:"serial" default:"true" doc:"HBase keeps the order of a region's changes over moves and splits, at the price of waiting for them"`
	Listen   string                  `config:"listen" default:"127.0.0.1:0" doc:"address on which changes are taken from region servers"`
	Host     string                  `config:"host" doc:"name by which region servers reach this worker; left out = the one of listen"`
	PeerZK   string                  `config:"peerZooKeeper" doc:"ZooKeeper where this worker registers; left out = zookeeper"`
	PeerNode string                  `config:"peerParent" doc:"znode under which it registers, which must not be that of a cluster; left out = /datalink/TASK"`
	Peer     string                  `config:"peer" doc:"id of the replication peer; left out = datalink_TASK"`
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
		Tables: cfg.Tables, Start: cfg.Start, Scope: cfg.Scope, Serial: cfg.Serial, Listen: cfg.Listen, Host: cfg.Host,
		ZooKeeper: zk, Parent: cfg.PeerNode, Peer: cfg.Peer, Window: int(cfg.Window), Task: env.Task, Log: env.Log,
	}, client)
	if err != nil {
		client.Close()
		return nil, err
	}
	return r, nil
}
