package writer

import (
	"context"
	"errors"
	"fmt"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/sdk"
)

// Check looks at the cluster, at the bookkeeping table, and at the tables that the
// configuration names.
func (w *Writer) Check(ctx context.Context) ([]sdk.Finding, error) {
	var out []sdk.Finding
	add := func(s sdk.Severity, subject, advice, format string, args ...any) {
		out = append(out, sdk.Finding{Severity: s, Subject: subject, Message: fmt.Sprintf(format, args...), Advice: advice})
	}
	id, err := w.store.ClusterID(ctx)
	if err != nil {
		return nil, fault(err)
	}
	add(sdk.Info, "cluster", "", "id %s", id)
	if _, err := w.store.Describe(ctx, w.cfg.Progress); errors.Is(err, rpc.ErrNoTable) {
		add(sdk.Info, "bookkeeping", "", "table %s will be made", w.cfg.Progress)
	} else if err != nil {
		return nil, fault(err)
	}
	if w.cfg.Version == ByEventTime {
		add(sdk.Warning, "version", "use version: position unless TTL or time ranges are needed",
			"event-time: changes of a row within one millisecond are told apart while the worker remembers the row; a write that a paused worker makes late in that millisecond may win")
	}
	switch w.cfg.Durability {
	case "none":
		add(sdk.Warning, "durability", "use the table's", "none: rows that are acknowledged are lost with their region server, and are not replicated")
	case "async":
		add(sdk.Warning, "durability", "use the table's", "async: the last moments of acknowledged rows may be lost with their region server")
	}
	for source, rule := range w.cfg.Tables {
		if rule.Table == "" {
			continue
		}
		t, err := w.store.Describe(ctx, rule.Table)
		switch {
		case errors.Is(err, rpc.ErrNoTable) && w.cfg.Create == Off:
			add(sdk.Error, rule.Table, "create it, or set create: auto", "table of %s does not exist", source)
			continue
		case errors.Is(err, rpc.ErrNoTable):
			add(sdk.Info, rule.Table, "", "table of %s will be made", source)
			continue
		case err != nil:
			return nil, fault(err)
		}
		families := []string{or(rule.Family, w.cfg.Family)}
		for _, x := range inspect(t, families, w.cfg.Version) {
			s := sdk.Warning
			if x.setting == "family" || x.fatal() && w.cfg.Settings == Demand {
				s = sdk.Error
			}
			add(s, rule.Table, remedy(rule.Table, families), "%s", x.text(rule.Table))
		}
		if t.Values[datedBy] == ByPosition && w.cfg.Version == ByEventTime {
			add(sdk.Error, rule.Table, "keep version: position, or write into a new table", "it was written by position: what is written by event-time would never be seen")
		}
	}
	return out, nil
}
