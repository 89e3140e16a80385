package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/rows"
	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/plugins/mysql/internal/snapshot"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

var _ sdk.Reader = (*Reader)(nil)

// Reader reads the transactions of a log from its files.
type Reader struct {
	cfg    Config
	start  start
	filter filter
	passes filter // tables whose changes by statement are left out
	log    *slog.Logger
	sw     Switches

	files []binlog.File
	file  int // place in files of the open one
	src   *binlog.Source
	scan  *binlog.Scanner // of the open file
	ahead lookahead
	// lookAhead is the method far, kept so that it is not made anew each time.
	lookAhead func(at int64) (*binlog.Scanner, error)
	here      place // file, identity and offset after the last whole transaction
	ended     error // what Next returns for ever
	points    []point
	since     int64 // seconds: transactions before it are passed over

	tx       tx
	levels   []level // insides that are being read: compressed or prepared transactions
	iter     rows.Iter
	ev       binlog.Event
	group    binlog.Group
	tables   tables
	hist     *schema.History
	online   map[schema.Name]*online
	origins  origins
	known    bool          // the state had layouts
	unlogged bool          // a foreign key that acts is to be refused
	first    bool          // no position was given to Open and none was told yet
	unsaved  []schema.Name // layouts that the state does not have yet
	doubts   map[schema.Name]*doubt
	// unsavedItems are further items that the state does not have yet.
	unsavedItems []batch.StateItem
	asked        time.Time // when the server was asked for layouts last
	xa           map[string]span
	live         *live // reading from a server; nil = from files
	zstd         *binlog.Decompressor
	inner        *binlog.Scanner // of the inside of compressed transactions
	inflated     []byte
	silent       uint64 // bytes passed over since something was appended
}

// point is one of the points given to Open.
type point struct {
	place
	ordinal uint64
}

// New returns a reader of the files that the configuration names.
func New(env sdk.Env, cfg Config) (*Reader, error) {
	if p := cfg.Validate(); len(p) > 0 {
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "%s", p[0])
	}
	log := env.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s, _ := parseStart(cfg.Start, len(cfg.Address) > 0)
	r := &Reader{cfg: cfg, start: s, filter: newFilter(cfg.Tables), passes: newFilter(cfg.IgnoreStmts), log: log, sw: switchesFromEnv()}
	if len(cfg.Address) > 0 {
		r.live = &live{
			addrs: cfg.Address, period: cfg.Heartbeat, gather: gather{dir: cfg.SpoolDir},
			cfg: server.Config{User: cfg.User, Password: cfg.Password, TLS: cfg.TLS, Program: "datalink " + env.Task},
		}
		if r.live.period == 0 {
			r.live.period = 2 * time.Second
		}
		r.live.cfg.Timeout = min(10*time.Second, max(2*time.Second, 3*r.live.period))
	}
	r.lookAhead = r.far
	return r, nil
}

// Check finds the files and looks at the head of each.
func (r *Reader) Check(ctx context.Context) ([]sdk.Finding, error) {
	if r.live != nil {
		found, err := r.checkLive(ctx)
		if err != nil {
			return found, err
		}
		return r.checkCascades(ctx, found)
	}
	files, err := binlog.Find(r.cfg.Files)
	if err != nil {
		return []sdk.Finding{{Severity: sdk.Error, Subject: "files", Message: err.Error(), Advice: "name the files of one log, in one folder"}}, nil
	}
	var found []sdk.Finding
	for i := range files {
		if err := ctx.Err(); err != nil {
			return found, err
		}
		f := &files[i]
		if i > 0 && f.Number != files[i-1].Number+1 {
			found = append(found, sdk.Finding{
				Severity: sdk.Error, Subject: f.Path, Message: fmt.Sprintf("the file after %s is missing: the next one that is there is %s", files[i-1].Name(), f.Name()),
				Advice: "add the missing files, or name only those after the gap",
			})
		}
		if err := head(f); err != nil {
			found = append(found, sdk.Finding{Severity: sdk.Error, Subject: f.Path, Message: err.Error(), Advice: "name only readable files of MySQL or MariaDB binary logs"})
		}
	}
	return found, nil
}

func head(f *binlog.File) error {
	src, err := f.OpenAt(4)
	if err != nil {
		return err
	}
	defer src.Close()
	var ev binlog.Event
	s := binlog.NewScanner(f.Path, src, 4, binlog.Format{}, 0)
	if err := s.Next(&ev); err != nil {
		return err
	}
	if ev.Type != binlog.FormatDescription {
		return fmt.Errorf("%w: %s begins with a %s event, expected FORMAT_DESCRIPTION", binlog.ErrCorrupt, f.Path, ev.Type)
	}
	return nil
}

// Open finds the place to begin at.
func (r *Reader) Open(ctx context.Context, ex sdk.Execution, points []sdk.Point, state []batch.StateItem) error {
	r.reset()
	if r.live != nil {
		if err := r.openLive(ctx, ex, points, state); err != nil {
			return err
		}
		failpoint.Hit("mysql.opened")
		return nil
	}
	var err error
	if r.files, err = binlog.Find(r.cfg.Files); err != nil {
		return sdk.Faultf(sdk.CodeUnavailable, "%v", err).Suggest("see that the files are there and readable")
	}
	for i := 1; i < len(r.files); i++ {
		if r.files[i].Number != r.files[i-1].Number+1 {
			return sdk.Faultf(sdk.CodeCorruptSource, "files: between %s and %s files are missing", r.files[i-1].Name(), r.files[i].Name()).Suggest("add them, or name only those after the gap")
		}
	}
	var from *place
	fresh := len(points) == 0
	for i := range points {
		p := points[i].Position
		if p.IsZero() {
			fresh = true
			r.points = append(r.points, point{place: place{off: -1}})
			continue
		}
		pl, err := placeOf(p)
		if err != nil {
			return err
		}
		if from == nil || pl.order(from) < 0 {
			from = &pl
		}
		r.points = append(r.points, point{pl, p.Ordinal})
	}
	if fresh {
		begin, err := r.begin(ctx)
		if err != nil {
			return err
		}
		if from == nil || begin.order(from) < 0 {
			from = &begin
		}
	} else {
		r.since = 0
	}
	if err := r.openAt(ctx, from, state); err != nil {
		return err
	}
	failpoint.Hit("mysql.opened")
	return nil
}

// begin resolves the configured start.
func (r *Reader) begin(ctx context.Context) (place, error) {
	first := &r.files[0]
	p := place{base: first.Base, number: first.Number, digits: first.Digits, off: 4}
	switch {
	case r.start.at != nil:
		return *r.start.at, nil
	case !r.start.since.IsZero():
		r.since = r.start.since.Unix()
	case r.start.latest:
		return r.last(ctx)
	}
	return p, nil
}

func (r *Reader) reset() {
	r.closeFiles()
	if l := r.live; l != nil {
		l.stopWeaving()
		l.hangUp()
		l.stopSharing()
		l.gather.reset()
		l.next = snapshot.Go
		l.anew, l.asked = anewNone, nil
		l.lost, l.down, l.beat, l.skipTo = nil, time.Time{}, false, 0
		r.scan = nil
	}
	r.ended, r.points, r.since = nil, r.points[:0], 0
	r.tx = tx{}
	r.iter = rows.Iter{}
	r.tables = newTables()
	r.hist = schema.NewHistory()
	r.online = map[schema.Name]*online{}
	r.unsaved, r.unsavedItems, r.doubts, r.asked = nil, nil, nil, time.Time{}
	r.origins = newOrigins(r.cfg.IgnoreOrigins)
	r.xa = map[string]span{}
	r.silent = 0
}

// Next appends transactions until out is full.
func (r *Reader) Next(ctx context.Context, out *batch.Builder) error {
	if r.scan == nil && r.ended == nil {
		return sdk.Faultf(sdk.CodeInternal, "the reader was not opened")
	}
	if r.live != nil {
		return r.nextLive(ctx, out)
	}
	r.silent = 0
	for r.ended == nil && !out.Full() && ctx.Err() == nil && r.silent < quietBytes {
		if err := r.step(out); err != nil {
			r.ended = r.fault(err)
		}
	}
	if err := r.pause(out); err != nil {
		return err
	}
	failpoint.Hit("mysql.block")
	if r.ended != nil && out.Empty() {
		return r.ended
	}
	if errors.Is(r.ended, io.EOF) {
		return io.EOF
	}
	if out.Empty() {
		return ctx.Err()
	}
	return nil
}

// quietBytes is how much of the log may go by without a change for this task
// before progress is reported.
const quietBytes = 64 << 20

// Close closes the files, or the connection.
func (r *Reader) Close(context.Context) error {
	r.closeFiles()
	if l := r.live; l != nil {
		l.stopWeaving()
		l.hangUp()
		l.stopSharing()
		l.gather.reset()
	}
	if r.zstd != nil {
		r.zstd.Close()
		r.zstd = nil
	}
	return nil
}
