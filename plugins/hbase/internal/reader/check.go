package reader

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/sdk"
)

// Check looks at the tables.
func (r *Reader) Check(ctx context.Context) ([]sdk.Finding, error) {
	var out []sdk.Finding
	add := func(s sdk.Severity, subject, advice, format string, args ...any) {
		out = append(out, sdk.Finding{Severity: s, Subject: subject, Message: fmt.Sprintf(format, args...), Advice: advice})
	}
	if len(r.sources) == 0 {
		add(sdk.Error, "tables", "name the tables and their columns; `datalink plugin discover` proposes them", "none is named")
	}
	for _, s := range r.sources {
		t, err := r.client.Describe(ctx, s.name)
		switch {
		case errors.Is(err, rpc.ErrNoTable):
			add(sdk.Error, s.name, "create it, or take it out of tables", "table does not exist")
			continue
		case err != nil:
			return nil, unavailable(err)
		}
		for _, f := range s.families {
			fam := t.Family(f)
			if fam == nil {
				add(sdk.Error, s.name, "correct the cells of its columns", "there is no family %s", f)
				continue
			}
			if n, _ := strconv.Atoi(fam.Values["REPLICATION_SCOPE"]); n == 0 {
				sev := sdk.Info
				if r.cfg.Scope == "demand" {
					sev = sdk.Error
				}
				add(sev, s.name, "alter '"+s.name+"', {NAME => '"+f+"', REPLICATION_SCOPE => '1'}, or replicationScope: set", "changes of family %s are not replicated yet", f)
			}
		}
		if r.cfg.Row == Change {
			add(sdk.Warning, s.name, "use row: current unless every writer leaves timestamps to the servers",
				"row: change takes values in the order in which they were written: one that is written with an older timestamp than the value that is there is given, although nobody sees it in HBase")
		}
	}
	if !r.cfg.Serial && r.cfg.Row == Change {
		add(sdk.Warning, "serial", "set serial: true", "without it, changes of a row may come out of order when its region moves, splits or merges")
	}
	if r.cfg.Shared {
		add(sdk.Warning, "sharedPeer", "use it towards writers of the level versioned alone", "tasks that share a peer get the changes of one row by turns, and may write them in another order")
	}
	return out, nil
}
