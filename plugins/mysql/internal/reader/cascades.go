package reader

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/mysql/internal/catalog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/sdk"
)

const adviceCascades = "let the target have the same foreign keys, which then do the same, and set cascades: accept; or take the action from the key and let the application change the children"

// cascadeFindings names the foreign keys of tables that are read whose actions the
// log does not hold.
func (r *Reader) cascadeFindings(ctx context.Context, c *server.Conn) ([]sdk.Finding, error) {
	found, err := catalog.Silent(ctx, c, r.wants)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	severity := sdk.Error
	if r.cfg.Cascades == "accept" {
		severity = sdk.Warning
	}
	var out []sdk.Finding
	for i := range found {
		f := &found[i]
		out = append(out, sdk.Finding{
			Severity: severity, Subject: f.Child.String() + ", foreign key " + f.Name,
			Message: fmt.Sprintf("the server changes rows of %s when rows of %s change (ON DELETE %s, ON UPDATE %s) and writes nothing of it to its log", f.Child, f.Parent, f.OnDelete, f.OnUpdate),
			Advice:  adviceCascades,
		})
	}
	return out, nil
}

// checkCascades adds those keys to what Check found.
func (r *Reader) checkCascades(ctx context.Context, found []sdk.Finding) ([]sdk.Finding, error) {
	c, err := r.dial(ctx)
	if err != nil {
		return found, nil // Check has said so
	}
	defer func() { _ = c.Close() }()
	more, err := r.cascadeFindings(ctx, c)
	if err != nil {
		more = []sdk.Finding{{Severity: sdk.Warning, Subject: "cascades", Message: fmt.Sprintf("foreign keys could not be read: %v", err), Advice: "let the account read the definitions of the tables"}}
	}
	return append(found, more...), nil
}

// refuseCascades stops where such keys are and were not accepted.
func (r *Reader) refuseCascades(ctx context.Context, c *server.Conn) error {
	r.unlogged = false
	found, err := r.cascadeFindings(ctx, c)
	if err != nil {
		return err
	}
	logs, err := catalog.LogsCascades(ctx, c)
	if err != nil {
		return err
	}
	r.unlogged = !logs && r.cfg.Cascades != "accept"
	if len(found) == 0 || r.cfg.Cascades == "accept" {
		return nil
	}
	var names []string
	for i := range found {
		names = append(names, found[i].Subject)
	}
	return sdk.Faultf(sdk.CodeRefused, "the log of the server lacks what foreign keys do to %s: %s", names[0], found[0].Message).
		Suggest("%s; the keys are: %s", adviceCascades, strings.Join(names, "; "))
}

// newCascade stops at a schema change that brings such a key.
func (r *Reader) newCascade(c *schema.Change) error {
	if !r.unlogged || c.After == nil {
		return nil
	}
	for _, k := range c.After.ForeignKeys {
		if !catalog.Acts(k.OnDelete) && !catalog.Acts(k.OnUpdate) {
			continue
		}
		if c.Before != nil && slices.ContainsFunc(c.Before.ForeignKeys, func(o schema.ForeignKey) bool { return o.Name == k.Name }) {
			continue
		}
		return sdk.Faultf(sdk.CodeRefused, "%s: foreign key %s of %s lets the server change its rows when rows of %s.%s change, and the log will hold nothing of it", r.place(), k.Name, c.Table, k.RefDatabase, k.RefTable).
			Suggest(adviceCascades)
	}
	return nil
}
