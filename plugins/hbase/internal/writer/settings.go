package writer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/sdk"
)

// Names of settings.
const (
	keepDeleted  = "KEEP_DELETED_CELLS"
	newVersions  = "NEW_VERSION_BEHAVIOR"
	purgeDeletes = "hbase.hstore.time.to.purge.deletes"
	timeToLive   = "TTL"
	datedBy      = "DATALINK_VERSION"
)

// tableOf describes a table as the writer makes it: tombstones stay for good, so
// that the order in which writes arrive never matters.
func tableOf(name string, families []string, version string) *rpc.Table {
	t := &rpc.Table{Name: name, Values: map[string]string{purgeDeletes: "1", datedBy: version}}
	for _, f := range families {
		t.Families = append(t.Families, rpc.Family{Name: f, Values: map[string]string{
			keepDeleted: "TRUE", newVersions: "false", "VERSIONS": "1", "BLOOMFILTER": "ROW",
		}})
	}
	return t
}

// problem is a setting that makes the outcome depend on the order of arrival, or
// loses rows.
type problem struct{ family, setting, found, want, cost string }

// inspect returns the problems of a table's families.
func inspect(t *rpc.Table, families []string, version string) []problem {
	var out []problem
	for _, f := range families {
		if t.Family(f) == nil {
			out = append(out, problem{f, "family", "none", "a family of that name", "no row can be written"})
			continue
		}
		if v, _ := t.Setting(f, keepDeleted); !strings.EqualFold(v, "TRUE") {
			out = append(out, problem{
				f, keepDeleted, orNone(v), "TRUE",
				"a major compaction drops tombstones; a write that arrives after it (a retry, a paused worker) brings a deleted row or an old value back",
			})
		}
		if v, _ := t.Setting(f, newVersions); strings.EqualFold(v, "true") {
			out = append(out, problem{f, newVersions, v, "false", "tombstones hide by order of arrival, not by version: a repeated delete hides newer rows"})
		}
		v, _ := t.Setting(f, purgeDeletes)
		if n, err := strconv.ParseInt(v, 10, 64); err != nil || n < 1 {
			out = append(out, problem{
				f, purgeDeletes, orNone(v), "1 or more, on the table",
				"a tombstone older than the oldest value of its region goes at a major compaction; a late write reappears",
			})
		}
		if v, ok := t.Setting(f, timeToLive); ok && v != "" && v != strconv.Itoa(1<<31-1) && !strings.EqualFold(v, "FOREVER") && version == ByPosition {
			out = append(out, problem{
				f, timeToLive, v, "none, or version: event-time",
				"versions by position lie in the far future of HBase's clock: nothing ever expires",
			})
		}
	}
	return out
}

func orNone(v string) string {
	if v == "" {
		return "not set"
	}
	return v
}

// fatal reports whether a problem stops the writer unless settings are accepted.
func (p *problem) fatal() bool { return p.setting != timeToLive }

func (p *problem) text(table string) string {
	if p.setting == "family" {
		return fmt.Sprintf("table %s has no column family %s", table, p.family)
	}
	return fmt.Sprintf("table %s, family %s: %s is %s, expected %s: %s", table, p.family, p.setting, p.found, p.want, p.cost)
}

// remedy says how a table is mended, in the words of the HBase shell.
func remedy(table string, families []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "alter '%s'", table)
	for _, f := range families {
		fmt.Fprintf(&b, ", {NAME => '%s', KEEP_DELETED_CELLS => 'TRUE', NEW_VERSION_BEHAVIOR => 'false'}", f)
	}
	fmt.Fprintf(&b, "; alter '%s', CONFIGURATION => {'%s' => '1'}; or settings: accept", table, purgeDeletes)
	return b.String()
}

// ready finds or makes the table of a plan.
func (w *Writer) ready(ctx context.Context, p *plan) error {
	t, err := w.store.Describe(ctx, p.table)
	if errors.Is(err, rpc.ErrNoTable) {
		if w.cfg.Create == Off {
			return sdk.Faultf(sdk.CodeSchemaMismatch, "table %s does not exist and create is off", p.table).Suggest("create it, or set create: auto")
		}
		if err := w.store.Create(ctx, tableOf(p.table, p.families, w.cfg.Version), p.splits(w.cfg.Regions)...); err != nil {
			return fault(err)
		}
		w.cfg.Log.Info("table made", "table", p.table, "families", p.families)
		t, err = w.store.Describe(ctx, p.table)
	}
	if err != nil {
		return fault(err)
	}
	for _, x := range inspect(t, p.families, w.cfg.Version) {
		switch {
		case x.setting == "family":
			return sdk.Faultf(sdk.CodeSchemaMismatch, "%s", x.text(p.table)).Suggest("add it: alter '%s', '%s'", p.table, x.family)
		case x.fatal() && w.cfg.Settings == Demand:
			return sdk.Faultf(sdk.CodeRefused, "%s", x.text(p.table)).Suggest("%s", remedy(p.table, p.families))
		}
		w.cfg.Log.Warn("table setting", "found", x.text(p.table))
	}
	if by := t.Values[datedBy]; by == ByPosition && w.cfg.Version == ByEventTime {
		return sdk.Faultf(sdk.CodeRefused, "table %s was written with version: position; writes by event-time would be below all of it and never be seen", p.table).
			Suggest("write into a new table, or keep version: position")
	}
	return nil
}
