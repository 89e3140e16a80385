package task

import (
	"context"
	"errors"
	"sync"

	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/wire"
)

// openedSource tells when the reader has opened.
type openedSource struct {
	pipeline.Source
	opened func()
}

func (s *openedSource) Open(ctx context.Context, req *wire.OpenRequest) (pipeline.SourceStream, error) {
	st, err := s.Source.Open(ctx, req)
	if err == nil {
		s.opened()
	}
	return st, err
}

// watchedSink tells when the target refuses a write.
type watchedSink struct {
	pipeline.Sink
	refused func()
}

func (s *watchedSink) Write(ctx context.Context) (pipeline.SinkStream, error) {
	st, err := s.Sink.Write(ctx)
	if err != nil {
		return nil, err
	}
	return &watchedStream{SinkStream: st, refused: sync.OnceFunc(s.refused)}, nil
}

type watchedStream struct {
	pipeline.SinkStream
	refused func()
}

func (s *watchedStream) Recv() (*wire.WriteReply, error) {
	r, err := s.SinkStream.Recv()
	if r != nil && r.Fault != nil && r.Fault.Code == sdk.CodeFenced || errors.Is(err, sdk.ErrFenced) {
		s.refused()
	}
	return r, err
}

// watch puts the wrappers around a pipeline's connectors.
func watch(cfg *pipeline.Config, opened func(), refused func(writer string)) {
	source := func(s pipeline.Source) pipeline.Source { return &openedSource{s, opened} }
	cfg.Reader.Source = source(cfg.Reader.Source)
	if reopen := cfg.Reader.Reopen; reopen != nil {
		cfg.Reader.Reopen = func(ctx context.Context) (pipeline.Source, error) {
			s, err := reopen(ctx)
			if err != nil {
				return nil, err
			}
			return source(s), nil
		}
	}
	for i := range cfg.Writers {
		w := &cfg.Writers[i]
		name := w.Name
		sink := func(s pipeline.Sink) pipeline.Sink { return &watchedSink{s, func() { refused(name) }} }
		w.Sink = sink(w.Sink)
		if reopen := w.Reopen; reopen != nil {
			w.Reopen = func(ctx context.Context) (pipeline.Sink, error) {
				s, err := reopen(ctx)
				if err != nil {
					return nil, err
				}
				return sink(s), nil
			}
		}
	}
}
