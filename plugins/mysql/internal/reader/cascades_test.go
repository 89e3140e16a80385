package reader

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/sdk"
)

// TestCascades has MariaDB, which logs nothing of what foreign keys do: Check names
// the keys, a task does not start, and one that runs stops at a new key; unless they
// are accepted. MySQL logs the rows.
func TestCascades(t *testing.T) {
	for _, kind := range []string{"mariadb", "mysql"} {
		t.Run(kind, func(t *testing.T) {
			srv := stack.Start(t, kind)
			srv.SQL("CREATE DATABASE d; USE d; CREATE TABLE mark (id INT PRIMARY KEY); CREATE TABLE parent (id INT PRIMARY KEY); CREATE TABLE child (id INT PRIMARY KEY, p INT, CONSTRAINT fk FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE); INSERT INTO parent VALUES (1), (2); INSERT INTO child VALUES (1, 1), (2, 2); DELETE FROM parent WHERE id = 1; INSERT INTO mark VALUES (1);")
			check := func(cascades string) (list []string) {
				f := liveFollower(srv, "earliest", func(c *Config) { c.Cascades = cascades })
				r, err := f.New()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close(context.Background())
				found, err := r.(*Reader).Check(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range found {
					if strings.Contains(x.Subject, "foreign key") {
						list = append(list, x.Severity.String()+" "+x.Subject)
					}
				}
				return list
			}
			f := liveFollower(srv, "earliest", nil)
			if kind == "mysql" {
				if got := check("stop"); got != nil {
					t.Errorf("check found %q", got)
				}
				if err := until(t, f, 1); err != nil {
					t.Fatal(err)
				}
				compareAll(t, f, srv, 3)
				return
			}
			if got := check("stop"); len(got) != 1 || got[0] != "error d.child, foreign key fk" {
				t.Errorf("check found %q", got)
			}
			if got := check("accept"); len(got) != 1 || got[0] != "warning d.child, foreign key fk" {
				t.Errorf("check found %q", got)
			}
			var fault *sdk.Fault
			ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
			defer stop()
			if err := f.Run(ctx, 0); !errors.As(err, &fault) || fault.Code != sdk.CodeRefused || !strings.Contains(err.Error(), "d.child, foreign key fk") {
				t.Errorf("it ended with %v", err)
			}
			srv.SQL("ALTER TABLE d.child DROP FOREIGN KEY fk; INSERT INTO d.mark VALUES (2)")
			g := liveFollower(srv, "latest", nil)
			short, end := context.WithTimeout(context.Background(), time.Second)
			defer end()
			if err := g.Run(short, 0); err != nil {
				t.Fatal(err)
			}
			srv.SQL("ALTER TABLE d.child ADD CONSTRAINT fk2 FOREIGN KEY (p) REFERENCES d.parent (id) ON DELETE SET NULL; INSERT INTO d.mark VALUES (3)")
			if err := until(t, g, 3); err == nil || !strings.Contains(err.Error(), "fk2") {
				t.Errorf("it ended with %v", err)
			}
			h := liveFollower(srv, "latest", func(c *Config) { c.Cascades = "accept" })
			short, end = context.WithTimeout(context.Background(), time.Second)
			defer end()
			if err := h.Run(short, 0); err != nil {
				t.Fatal(err)
			}
		})
	}
}
