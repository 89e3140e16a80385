package pglog

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// job is what a reader in a process of its own gets.
type job struct {
	Config Config
	Point  sdk.Position
	State  []batch.StateItem
	Limits batch.Limits
}

// TestMain runs a reader instead of tests where the environment says so: it writes
// its blocks to standard output, and takes durable positions from standard input.
func TestMain(m *testing.M) {
	if os.Getenv("DATALINK_TEST_READER") == "" {
		os.Exit(m.Run())
	}
	if err := child(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child() error {
	in := json.NewDecoder(os.Stdin)
	var j job
	if err := in.Decode(&j); err != nil {
		return err
	}
	j.Config.Switches = FromEnv()
	r, err := New(j.Config)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := r.Open(ctx, sdk.Execution{Task: "t", TaskUID: testUID}, []sdk.Point{{Writer: "w", Position: j.Point}}, j.State); err != nil {
		return err
	}
	go func() {
		for {
			var p sdk.Position
			if in.Decode(&p) != nil {
				return
			}
			_ = r.Durable(ctx, p)
		}
	}()
	out := batch.NewBuilder(j.Limits)
	for {
		out.Reset()
		if err := r.Next(ctx, out); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		data, err := out.Finish()
		if err != nil {
			return err
		}
		if _, err := os.Stdout.Write(binary.BigEndian.AppendUint32(nil, uint32(len(data)))); err != nil {
			return err
		}
		if _, err := os.Stdout.Write(data); err != nil {
			return err
		}
	}
}

// lives runs the reader as a process and applies what it sends until done or until
// it has lived that long: then it is killed. It returns an error of the reader.
func (tg *target) lives(cfg Config, life time.Duration, done func(*session) bool) (bool, error) {
	tg.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		tg.t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "DATALINK_TEST_READER=1")
	stdin, _ := cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		tg.t.Fatal(err)
	}
	// Mostly it lives that long from its first block on: on a busy machine it would
	// not get to one otherwise.
	least := time.Minute
	if rand.IntN(5) == 0 {
		least = life
	}
	kill := time.AfterFunc(least, func() { _ = cmd.Process.Kill() })
	blocks := 0
	defer func() {
		kill.Stop()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	j := job{Config: cfg, Point: tg.point}
	if tg.snapshotOpen() || rand.IntN(2) == 0 {
		// Small blocks, so that no single one has all of the snapshot.
		j.Limits = batch.Limits{Full: 1 + rand.IntN(5000), Events: 1 + rand.IntN(50)}
	}
	for _, it := range tg.state {
		j.State = append(j.State, it)
	}
	enc := json.NewEncoder(stdin)
	if err := enc.Encode(j); err != nil {
		return false, nil
	}
	for _, ct := range tg.tables {
		clear(ct.seen)
	}
	s := &session{target: tg, r: &Reader{}, reg: batch.NewRegistry()}
	in := bufio.NewReaderSize(stdout, 1<<20)
	told := time.Now()
	for {
		var n [4]byte
		if _, err := io.ReadFull(in, n[:]); err != nil {
			break
		}
		data := make([]byte, binary.BigEndian.Uint32(n[:]))
		if _, err := io.ReadFull(in, data); err != nil {
			break
		}
		if blocks++; blocks == 1 {
			kill.Reset(life)
		}
		if err := s.apply(data); err != nil {
			return false, err
		}
		if time.Since(told) > 50*time.Millisecond {
			told = time.Now()
			_ = enc.Encode(tg.point)
		}
		if done(s) {
			return true, nil
		}
	}
	_ = cmd.Wait()
	if text := strings.TrimSpace(errs.String()); text != "" && cmd.ProcessState.ExitCode() == 1 {
		return false, errors.New(text)
	}
	return false, nil
}

// load changes tables a and b at random until stop is closed.
func load(t *testing.T, srv *stack.Server, seed uint64, stop chan struct{}, wg *sync.WaitGroup) {
	defer wg.Done()
	rng := rand.New(rand.NewPCG(seed, 7))
	for {
		select {
		case <-stop:
			return
		default:
		}
		var b strings.Builder
		for range 20 {
			n := 1 + rng.IntN(5)
			if rng.IntN(15) == 0 {
				n = 300
			}
			b.WriteString("BEGIN;\n")
			for range n {
				id, other := rng.IntN(3000), rng.IntN(3000)
				tb := []string{"a", "b"}[rng.IntN(2)]
				switch rng.IntN(7) {
				case 0, 1:
					fmt.Fprintf(&b, "INSERT INTO %s VALUES (%d, 'i%d', repeat('x', %d), %d) ON CONFLICT DO NOTHING;\n", tb, id, rng.IntN(1e6), rng.IntN(3000), rng.IntN(1e6))
				case 2, 3:
					fmt.Fprintf(&b, "UPDATE %s SET v = 'u%d' WHERE id = %d;\n", tb, rng.IntN(1e6), id)
				case 4:
					fmt.Fprintf(&b, "UPDATE %s SET id = %d WHERE id = %d AND NOT EXISTS (SELECT FROM %s WHERE id = %d);\n", tb, other, id, tb, other)
				case 5:
					fmt.Fprintf(&b, "DELETE FROM %s WHERE id = %d;\n", tb, id)
				case 6:
					fmt.Fprintf(&b, "SAVEPOINT s; UPDATE %s SET n = %d WHERE id BETWEEN %d AND %d; %s s;\n", tb, rng.IntN(1e6), id, id+rng.IntN(40), []string{"ROLLBACK TO", "RELEASE"}[rng.IntN(2)])
				}
			}
			b.WriteString([]string{"COMMIT;\n", "COMMIT;\n", "COMMIT;\n", "ROLLBACK;\n"}[rng.IntN(4)])
		}
		// A deadlock with the other load or a taken key ends a transaction: no matter.
		srv.SQL("SET client_min_messages=error;\n"+b.String(), "-q", "-v", "ON_ERROR_STOP=0", "-o", "/dev/null")
	}
}

const loadTables = `CREATE TABLE a (id int PRIMARY KEY, v text, big text, n int);
	ALTER TABLE a ALTER big SET STORAGE EXTERNAL;
	CREATE TABLE b (id bigint PRIMARY KEY, v text, big text, n int); ALTER TABLE b REPLICA IDENTITY FULL; ALTER TABLE b ALTER big SET STORAGE EXTERNAL;
	INSERT INTO a SELECT i, 'v' || i, repeat('x', i % 3000), i FROM generate_series(0, 2999, 2) i;
	INSERT INTO b SELECT i, 'v' || i, repeat('x', i % 3000), i FROM generate_series(0, 2999, 3) i;`

// TestKilled kills the reader again and again, in the snapshot and in the stream,
// while the source changes. The copy that is kept of what it sent, up to the change
// that the progress names, equals the source in the end.
func TestKilled(t *testing.T) {
	srv := server(t)
	sqlText(srv, loadTables)
	stop, wg := make(chan struct{}), &sync.WaitGroup{}
	wg.Add(2)
	go load(t, srv, 1, stop, wg)
	go load(t, srv, 2, stop, wg)
	tg := newTarget(t)
	cfg := Config{URL: url(srv), Tables: []string{"public.*"}, ChunkRows: 100}
	kills, inSnapshot := 0, 0
	began := time.Now()
	enough := func() bool {
		past := time.Since(began)
		return past > soak(10*time.Second) && inSnapshot >= 3 && kills >= inSnapshot+3 || past > soak(10*time.Second)+2*time.Minute
	}
	for ; !enough(); kills++ {
		life := time.Duration(100+rand.IntN(700)) * time.Millisecond
		n := 0
		limit := 1 + rand.IntN(4)
		_, err := tg.lives(cfg, life, func(*session) bool {
			// While the snapshot lasts a process gives a few chunks and is killed.
			n++
			return tg.snapshotOpen() && n > limit
		})
		if err != nil {
			t.Fatalf("life %d, at %s+%d: %v", kills, tg.point.Source, tg.point.Ordinal, err)
		}
		if tg.snapshotOpen() {
			inSnapshot++
		}
	}
	close(stop)
	wg.Wait()
	end, err := parseLSN(sqlText(srv, "SELECT pg_logical_emit_message(true, 'end', '')"))
	if err != nil {
		t.Fatal(err)
	}
	ok, err := tg.lives(cfg, 2*time.Minute, func(s *session) bool {
		p, _, _ := parsePlace(string(tg.point.Source))
		return p.lsn >= end && !tg.snapshotOpen()
	})
	if !ok || err != nil {
		t.Fatalf("the last life ended at %s, before %s: %v", tg.point.Source, end, err)
	}
	tg.equal(srv, "public.a", "public.b")
	if inSnapshot < 3 || kills < inSnapshot+3 {
		t.Errorf("%d lives, %d ended in the snapshot, want three of both kinds", kills, inSnapshot)
	}
	t.Logf("%d lives, %d in the snapshot, %d rows", kills, inSnapshot, tg.rows)
}

// snapshotOpen reports whether a table has not been read to its end.
func (tg *target) snapshotOpen() bool {
	n := 0
	for _, it := range tg.state {
		var x tableItem
		if json.Unmarshal(it.Value, &x) == nil && x.Done {
			n++
		}
	}
	return n < 2
}

// soak stretches a test where DATALINK_SOAK says so.
func soak(d time.Duration) time.Duration {
	if x, err := time.ParseDuration(os.Getenv("DATALINK_SOAK")); err == nil {
		return x
	}
	return d
}
