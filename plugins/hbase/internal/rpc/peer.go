package rpc

import (
	"context"

	"google.golang.org/protobuf/encoding/protowire"
)

// Peer is a cluster that gets the changes of this one.
type Peer struct {
	ID         string
	ClusterKey string // quorum:port:/parent
	Tables     []string
	Serial     bool // changes of a region keep their order over moves and splits
	Disabled   bool
}

// AddPeer begins replication to a peer: all changes from now on are kept for it.
func (c *Client) AddPeer(ctx context.Context, p *Peer) error {
	state := uint64(0)
	if p.Disabled {
		state = 1
	}
	return c.procedure(ctx, "AddReplicationPeer", message(nil).string(1, p.ID).bytes(2, p.config()).bytes(3, message(nil).varint(1, state)))
}

// UpdatePeer gives a peer other tables or another order.
func (c *Client) UpdatePeer(ctx context.Context, p *Peer) error {
	return c.procedure(ctx, "UpdateReplicationPeerConfig", message(nil).string(1, p.ID).bytes(2, p.config()))
}

func (p *Peer) config() message {
	cfg := message(nil).string(1, p.ClusterKey)
	for _, t := range p.Tables {
		cfg = cfg.bytes(5, message(nil).bytes(1, tableName(t)))
	}
	return cfg.bool(8, len(p.Tables) == 0).bool(11, p.Serial)
}

// RemovePeer ends replication to a peer: what it did not get is dropped.
func (c *Client) RemovePeer(ctx context.Context, id string) error {
	return c.procedure(ctx, "RemoveReplicationPeer", message(nil).string(1, id))
}

// EnablePeer sends to a peer again, with what came meanwhile.
func (c *Client) EnablePeer(ctx context.Context, id string) error {
	return c.procedure(ctx, "EnableReplicationPeer", message(nil).string(1, id))
}

// DisablePeer keeps changes for a peer without sending them.
func (c *Client) DisablePeer(ctx context.Context, id string) error {
	return c.procedure(ctx, "DisableReplicationPeer", message(nil).string(1, id))
}

// Peers lists the peers.
func (c *Client) Peers(ctx context.Context) (out []Peer, err error) {
	msg, err := c.onMaster(ctx, "ListReplicationPeers", nil)
	if err != nil {
		return nil, err
	}
	err = fields(msg, func(f protowire.Number, _ uint64, b []byte) error {
		if f != 1 {
			return nil
		}
		var p Peer
		err := fields(b, func(f protowire.Number, _ uint64, b []byte) error {
			switch f {
			case 1:
				p.ID = string(b)
			case 2:
				return fields(b, func(f protowire.Number, v uint64, _ []byte) error {
					p.Disabled = f == 1 && v == 1
					return nil
				})
			case 3:
				return p.parse(b)
			}
			return nil
		})
		out = append(out, p)
		return err
	})
	return out, err
}

func (p *Peer) parse(data []byte) error {
	return fields(data, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			p.ClusterKey = string(b)
		case 5:
			return fields(b, func(f protowire.Number, _ uint64, b []byte) error {
				if f != 1 {
					return nil
				}
				t, err := parseTableName(b)
				p.Tables = append(p.Tables, t)
				return err
			})
		case 11:
			p.Serial = v != 0
		}
		return nil
	})
}
