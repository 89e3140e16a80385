package mysql

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/conformance"
	"github.com/datalink-go/datalink/sdk/delivery"
)

func init() {
	for _, lanes := range []int32{1, 4} {
		suite[fmt.Sprintf("conformance with %d lanes", lanes)] = func(t *testing.T, s *testServer) { conform(t, s, lanes) }
	}
}

func conform(t *testing.T, s *testServer, lanes int32) {
	if lanes == 1 && !s.maria && os.Getenv("DATALINK_SOAK") == "" {
		t.Skip("optional: one lane on MySQL takes a minute; DATALINK_SOAK=1 runs it")
	}
	for _, keyless := range []string{target.FullRowMatch} {
		sub := &conformance.Subject{
			Name: fmt.Sprintf("%s, %d lanes, keyless %s", s.Kind, lanes, keyless), Lanes: []int32{lanes}, Append: true, Match: keyless == target.FullRowMatch,
		}
		admin := s.admin(t)
		var free []string // databases of stores that were closed
		sub.New = func(ctx context.Context) (conformance.Store, error) {
			var name string
			if n := len(free); n > 0 {
				name, free = free[n-1], free[:n-1]
			} else {
				name = fmt.Sprintf("db%d", databases.Add(1))
				if err := admin.exec(ctx, "CREATE DATABASE "+name); err != nil {
					return nil, err
				}
			}
			return &store{s: s, admin: admin, database: name, lanes: lanes, keyless: keyless, free: &free}, nil
		}
		conformance.Run(t, sub)
	}
}

// store is a database that the kit's writers write to.
type store struct {
	s        *testServer
	admin    *session
	database string
	lanes    int32
	keyless  string
	free     *[]string
}

func (o *store) Open(context.Context) (sdk.Target, error) {
	return New(Config{URL: o.s.url(o.s.Addr(), o.database), Options: target.Options{Lanes: o.lanes, Keyless: o.keyless}})
}

func (o *store) Rows(ctx context.Context, s *batch.Schema) ([]string, error) {
	var cols []string
	for _, c := range s.Columns {
		cols = append(cols, "IFNULL("+quote(c.Name)+",'NULL')")
	}
	rows, err := o.admin.query(ctx, "SELECT CONCAT_WS('|',"+strings.Join(cols, ",")+") FROM "+tableName(o.at(s), s.Table))
	if number(err) == erNoSuchTable {
		return nil, nil
	}
	var out []string
	for _, r := range rows {
		out = append(out, r[0].text())
	}
	return out, err
}

func (o *store) at(s *batch.Schema) string {
	if s.Namespace == "" {
		return o.database
	}
	return s.Namespace
}

// Close empties the tables and keeps them for another store: to make and drop
// them is what takes the time.
func (o *store) Close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	tables, err := o.admin.query(ctx, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+literal(o.database))
	if err != nil {
		return err
	}
	for _, t := range tables {
		if err := o.admin.exec(ctx, "DELETE FROM "+tableName(o.database, t[0].text())); err != nil {
			return err
		}
	}
	*o.free = append(*o.free, o.database)
	return nil
}

func init() { suite["conformance on unique and foreign keys"] = constrained }

// constrained: the order of changes is the engine's; only a target that checks it
// shows that it is needed.
func constrained(t *testing.T, s *testServer) {
	admin := s.admin(t)
	sub := &conformance.Subject{Name: s.Kind + " with unique and foreign keys", Lanes: []int32{4}, Append: true, Match: true}
	sub.New = func(ctx context.Context) (conformance.Store, error) {
		name := fmt.Sprintf("db%d", databases.Add(1))
		for _, q := range []string{
			"CREATE DATABASE " + name + " CHARACTER SET utf8mb4",
			"CREATE TABLE " + name + ".kit_parent (id INT PRIMARY KEY, u INT UNIQUE, v LONGTEXT)",
			"CREATE TABLE " + name + ".kit_child (id INT PRIMARY KEY, u INT UNIQUE, v LONGTEXT, p INT, FOREIGN KEY (p) REFERENCES kit_parent (id))",
		} {
			if err := admin.exec(ctx, q); err != nil {
				return nil, err
			}
		}
		return &store{s: s, admin: admin, database: name, lanes: 4, keyless: target.FullRowMatch, free: new([]string)}, nil
	}
	scenario := conformance.Scenario{Splits: true, Duration: time.Minute}
	for seed := range pcg(12) {
		if err := conformance.Random(bg, sub, &seed, scenario); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	sub.Engine.Switches = delivery.Switches{TiesOff: true, LaneWaitOff: true}
	for seed := range pcg(60) {
		if err := conformance.Random(bg, sub, &seed, scenario); err != nil {
			return
		}
	}
	t.Error("nothing goes wrong without the order of changes")
}

// pcg draws numbers from a seed.
type pcg uint64

func (p *pcg) Int(lo, hi int) int {
	*p = *p*6364136223846793005 + 1442695040888963407
	return lo + int(uint64(*p)>>33)%(hi-lo+1)
}
