package postgres

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/conformance"
	"github.com/datalink-go/datalink/sdk/delivery"
	"github.com/datalink-go/datalink/sdk/manifest"
)

// kitStore is a schema of one database: it is emptied instead of made anew.
type kitStore struct {
	d       *db
	keyless string
	c       *pgconn.PgConn
	before  string // statements that make tables
}

func (k *kitStore) exec(ctx context.Context, q string) ([]*pgconn.Result, error) {
	return k.c.Exec(ctx, q).ReadAll()
}

func (k *kitStore) reset(ctx context.Context) error {
	_, err := k.exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'datalink'")
	if err != nil {
		return err
	}
	_, err = k.exec(ctx, "SET client_min_messages = warning; DROP SCHEMA public CASCADE; CREATE SCHEMA public; "+k.before)
	return err
}

func (k *kitStore) Open(context.Context) (sdk.Target, error) {
	return New(Config{URL: k.d.url, Options: target.Options{Keyless: k.keyless}})
}

func (k *kitStore) Rows(ctx context.Context, s *batch.Schema) ([]string, error) {
	res, err := k.exec(ctx, "SELECT to_regclass('"+quote(s.Table)+"') IS NOT NULL")
	if err != nil || string(res[0].Rows[0][0]) != "t" {
		return nil, err
	}
	var cols []string
	for i := range s.Columns {
		cols = append(cols, quote(s.Columns[i].Name))
	}
	if res, err = k.exec(ctx, "SELECT "+strings.Join(cols, ",")+" FROM "+quote(s.Table)); err != nil {
		return nil, err
	}
	var out []string
	for _, r := range res[0].Rows {
		var words []string
		for _, v := range r {
			if v == nil {
				words = append(words, conformance.Null)
			} else {
				words = append(words, string(v))
			}
		}
		out = append(out, strings.Join(words, "|"))
	}
	return out, nil
}

func (k *kitStore) Close(context.Context) error { return nil }

// Copy stands for a copy of the data files: all tables are kept aside and put back.
func (k *kitStore) Copy(ctx context.Context) (func(context.Context) error, error) {
	_, err := k.exec(ctx, `DROP SCHEMA IF EXISTS aside CASCADE; CREATE SCHEMA aside; DO $$ DECLARE r record; BEGIN
 FOR r IN SELECT tablename t FROM pg_tables WHERE schemaname = 'public' LOOP EXECUTE format('CREATE TABLE aside.%I AS TABLE public.%I', r.t, r.t); END LOOP; END $$`)
	return func(ctx context.Context) error {
		_, err := k.exec(ctx, `DO $$ DECLARE r record; BEGIN
 FOR r IN SELECT tablename t FROM pg_tables WHERE schemaname = 'public' LOOP EXECUTE format('DELETE FROM public.%I', r.t);
  IF to_regclass(format('aside.%I', r.t)) IS NOT NULL THEN EXECUTE format('INSERT INTO public.%I SELECT * FROM aside.%I', r.t, r.t); END IF; END LOOP; END $$`)
		return err
	}, err
}

// seeds is how many scenarios of each kind run where DATALINK_SOAK does not ask for
// the whole kit: each has sessions of its own to open.
const seeds = 5

// pcg draws numbers from a seed.
type pcg uint64

func (p *pcg) Int(lo, hi int) int {
	*p = *p*6364136223846793005 + 1442695040888963407
	return lo + int(uint64(*p)>>33)%(hi-lo+1)
}

func TestConformance(t *testing.T) {
	s := start(t)
	d := s.db(t)
	ctx := context.Background()
	conn, err := pgconn.Connect(ctx, d.url)
	must(t, err)
	defer conn.Close(ctx) //nolint:errcheck
	k := &kitStore{d: d, keyless: target.FullRowMatch, c: conn}
	sub := &conformance.Subject{
		Name: "postgres", Lanes: []int32{1, 4}, Append: true, Match: true,
		New: func(ctx context.Context) (conformance.Store, error) { return k, k.reset(ctx) },
	}
	if os.Getenv("DATALINK_SOAK") != "" {
		conformance.Run(t, sub)
		k.keyless = target.Append
		sub.Lanes, sub.Match = []int32{1}, false
		conformance.Run(t, sub)
		return
	}
	for _, c := range conformance.Cases() {
		if !slices.Contains(c.Levels, manifest.LevelTransactional) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
			defer cancel()
			must(t, k.reset(ctx))
			if err := c.Run(ctx, sub, k); err != nil {
				t.Error(err)
			}
		})
	}
	const constrained = "CREATE TABLE kit_parent (id int PRIMARY KEY, u int UNIQUE, v text); CREATE TABLE kit_child (id int PRIMARY KEY, u int UNIQUE, v text, p int REFERENCES kit_parent)"
	for name, sc := range map[string]conformance.Scenario{
		"random transactions":                            {Rounds: -1},
		"random transactions and crashes":                {Splits: true, Faults: true, Refusals: true},
		"random transactions, crashes and another order": {Splits: true, Reorder: true},
		"a target with unique and foreign keys":          {Splits: true},
	} {
		t.Run(name, func(t *testing.T) {
			sc.Duration = time.Minute
			k.before = ""
			if strings.Contains(name, "foreign keys") {
				k.before = constrained
			}
			for seed := range pcg(seeds) {
				d := seed
				if err := conformance.Random(ctx, sub, &d, sc); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
		})
	}
	t.Run("a target with unique and foreign keys, ties unknown", func(t *testing.T) {
		sub := *sub
		k.before = constrained
		sub.Lanes = []int32{4}
		sub.Engine.Switches = delivery.Switches{TiesOff: true, LaneWaitOff: true}
		for seed := range pcg(60) {
			d := seed
			if err := conformance.Random(ctx, &sub, &d, conformance.Scenario{Rounds: -1, Duration: time.Minute}); err != nil {
				t.Logf("seed %d: %v", seed, err)
				return
			}
		}
		t.Error("nothing goes wrong without the order of changes")
	})
}
