//go:build unix

package serve

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/datalink-go/datalink/sdk/internal/endpoint"
)

// endGroup ends this process at once, and with it what it started, where it
// leads its process group.
func endGroup() {
	if pid := os.Getpid(); syscall.Getpgrp() == pid {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
	os.Exit(1)
}

// onTerm closes the instance and ends the process at the first SIGTERM.
func onTerm(e *endpoint.Endpoint, log *slog.Logger) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	<-c
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := e.Close(ctx); err != nil {
		log.Error("close at SIGTERM", "error", err)
		os.Exit(1)
	}
	os.Exit(0)
}
