package reader

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// scoped sees that changes of a table's families are replicated at all.
func (r *Reader) scoped(ctx context.Context, s *source) error {
	t, err := r.client.Describe(ctx, s.name)
	if errors.Is(err, rpc.ErrNoTable) {
		return sdk.Faultf(sdk.CodeSchemaMismatch, "table %s does not exist", s.name)
	}
	if err != nil {
		return unavailable(err)
	}
	local := false
	for i := range t.Families {
		if v := t.Families[i].Values["REPLICATION_SCOPE"]; v == "" || v == "0" {
			local = true
			t.Families[i].Values["REPLICATION_SCOPE"] = "1"
		}
	}
	if !local {
		return nil
	}
	if r.cfg.Scope == "demand" {
		return sdk.Faultf(sdk.CodeRefused, "table %s has families whose changes are not replicated", s.name).
			Suggest("alter '%s', {NAME => 'd', REPLICATION_SCOPE => '1'}, or replicationScope: set", s.name)
	}
	return unavailable(r.client.Modify(ctx, t))
}

// peer adds the peer, or makes the one that is there what it should be: disabled
// while rows are scanned, with all tables of the configuration.
func (r *Reader) peer(ctx context.Context) error {
	peers, err := r.client.Peers(ctx)
	if err != nil {
		return unavailable(err)
	}
	host, port, err := net.SplitHostPort(firstOf(r.cfg.ZooKeeper))
	if err != nil {
		return sdk.Faultf(sdk.CodeInvalidConfig, "zookeeper %q: %v", r.cfg.ZooKeeper, err)
	}
	want := rpc.Peer{ID: r.cfg.Peer, ClusterKey: host + ":" + port + ":" + r.cfg.Parent, Serial: r.cfg.Serial, Disabled: r.scan != nil}
	for _, s := range r.sources {
		want.Tables = append(want.Tables, s.name)
	}
	i := slices.IndexFunc(peers, func(p rpc.Peer) bool { return p.ID == r.cfg.Peer })
	if i < 0 {
		if r.next.Load() > 0 {
			return sdk.Faultf(sdk.CodePositionPurged, "replication peer %s is gone: changes since then were not kept", r.cfg.Peer).
				Suggest("start the task over with a new snapshot")
		}
		if err := r.client.AddPeer(ctx, &want); err != nil {
			return unavailable(err)
		}
		failpoint.Hit("hbase.peer-added")
		return nil
	}
	have := peers[i]
	if have.ClusterKey != want.ClusterKey {
		return sdk.Faultf(sdk.CodeForeignClaim, "replication peer %s sends to %s, this task listens at %s", r.cfg.Peer, have.ClusterKey, want.ClusterKey).
			Suggest("give the task another peer, or remove_peer '%s' and start it over with a new snapshot", r.cfg.Peer)
	}
	// Disabled first: no change of a table may come before its rows are scanned.
	if want.Disabled && !have.Disabled {
		if err := r.client.DisablePeer(ctx, r.cfg.Peer); err != nil {
			return unavailable(err)
		}
	}
	if !sameTables(have.Tables, want.Tables) || have.Serial != want.Serial {
		if err := r.client.UpdatePeer(ctx, &want); err != nil {
			return unavailable(err)
		}
	}
	if !want.Disabled && have.Disabled {
		return unavailable(r.client.EnablePeer(ctx, r.cfg.Peer))
	}
	return nil
}

func sameTables(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// firstOf returns the first server: a cluster key has one port for all of them.
func firstOf(servers string) string {
	first, _, _ := strings.Cut(servers, ",")
	return first
}

// Release removes the peer.
func (r *Reader) Release(ctx context.Context, _ string) error {
	peers, err := r.client.Peers(ctx)
	if err != nil {
		return unavailable(err)
	}
	if !slices.ContainsFunc(peers, func(p rpc.Peer) bool { return p.ID == r.cfg.Peer }) {
		return nil
	}
	return unavailable(r.client.RemovePeer(ctx, r.cfg.Peer))
}
