package mysql

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/rowtest"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func init() {
	suite["check"] = checks
	suite["discover"] = discovers
	suite["a rehearsal"] = rehearsal
	suite["TLS"] = encrypted
}

func findings(t *testing.T, w *Writer) string {
	t.Helper()
	found, err := w.Check(bg)
	rowtest.Must(t, err)
	var out []string
	for _, f := range found {
		out = append(out, f.Severity.String()+": "+f.Message)
	}
	return strings.Join(out, "\n")
}

func checks(t *testing.T, s *testServer) {
	db := s.database(t)
	w := s.writer(t, db, nil)
	claim(t, w, execution("a", 3))
	got := findings(t, w)
	for _, want := range []string{"info: server ", "holds progress of task orders, writer w: execution a, epoch 3", "warning: innodb_flush_log_at_trx_commit is 2"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %q", got, want)
		}
	}
	if strings.Contains(got, "error: ") {
		t.Errorf("found errors:\n%s", got)
	}
	s.SQL("CREATE USER small@'%' IDENTIFIED BY 'p@ss'; GRANT SELECT, INSERT ON " + db + ".* TO small@'%'")
	small := s.writer(t, db, func(c *Config) { c.URL.User = url.UserPassword("small", "p@ss") })
	if got := findings(t, small); !strings.Contains(got, "error: the account lacks UPDATE, DELETE, CREATE, ALTER, DROP on `"+db+"`.*") {
		t.Errorf("an account with few rights:\n%s", got)
	}
	wrong := s.writer(t, db, func(c *Config) { c.URL.User = url.UserPassword("small", "secret") })
	if got := findings(t, wrong); !strings.Contains(got, "error: connect at") || strings.Contains(got, "secret") {
		t.Errorf("a wrong password:\n%s", got)
	}
	if _, err := wrong.Claim(bg, execution("b", 4)); err == nil || sdk.AsFault(err).Code != sdk.CodeUnauthorized {
		t.Errorf("claim with a wrong password: got %v, want %s", err, sdk.CodeUnauthorized)
	}
	missing := s.writer(t, db+"_none", nil)
	if got := findings(t, missing); !strings.Contains(got, "info: the database is not there") {
		t.Errorf("a database that is not there:\n%s", got)
	}
	claim(t, missing, execution("a", 1))
}

func discovers(t *testing.T, s *testServer) {
	db := s.database(t)
	s.SQL("CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, e ENUM('a','b'), d DECIMAL(7,3) NULL, u INT NOT NULL, UNIQUE (u)); CREATE TABLE datalink_x (a INT)", db)
	var got []string
	rowtest.Must(t, s.writer(t, db, nil).Discover(bg, func(x *batch.Schema) error {
		if x.Namespace == db {
			for _, c := range x.Columns {
				got = append(got, x.Table+"."+c.Name+" "+c.Type.String())
			}
			if len(x.Key) != 1 || !x.PrimaryKey || len(x.Uniques) != 1 {
				t.Errorf("key %v, uniques %v", x.Key, x.Uniques)
			}
		}
		return nil
	}))
	if d := cmp.Diff([]string{"t.id uint32", "t.e enum", "t.d decimal", "t.u int32"}, got); d != "" {
		t.Error(d)
	}
}

// rehearsal: statements are shown and nothing is there afterwards.
func rehearsal(t *testing.T, s *testServer) {
	db, k := s.database(t), rowtest.Keyed()
	w := s.writer(t, db, nil)
	_, err := w.Look(bg, execution("a", 1))
	rowtest.Must(t, err)
	texts, _, err := w.Rehearse(bg, k)
	rowtest.Must(t, err)
	if len(texts) != 1 || !strings.HasPrefix(texts[0], "CREATE TABLE") {
		t.Errorf("got %q, want the statement that makes the table", texts)
	}
	expect(t, s, db, "SHOW TABLES")
	claim(t, w, execution("a", 1))
	rowtest.Must(t, write(w, next(0, 1), insert(t, k, 1, "a", 1)))
	got, err := w.Look(bg, execution("a", 1))
	rowtest.Must(t, err)
	if len(got.Points) != 1 || got.Points[0].BatchNo != 1 {
		t.Errorf("got %+v, want batch 1", got)
	}
}

func encrypted(t *testing.T, s *testServer) {
	if s.maria {
		t.Skip("optional: MariaDB 10.11 makes no certificate of its own")
	}
	db := s.database(t)
	for mode, works := range map[string]bool{"skip-verify": true, "on": false} {
		w := s.writer(t, db, func(c *Config) { c.URL.RawQuery = "tls=" + mode })
		_, err := w.Claim(bg, execution("a", 1))
		if works != (err == nil) {
			t.Errorf("tls=%s: got %v", mode, err)
		}
		if err == nil {
			rows, err := w.own.query(bg, "SHOW SESSION STATUS LIKE 'Ssl_cipher'")
			rowtest.Must(t, err)
			if len(rows) != 1 || rows[0][1].text() == "" {
				t.Errorf("tls=%s: the session is not encrypted", mode)
			}
		}
	}
}
