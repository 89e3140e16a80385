package registry

import (
	"errors"
	"fmt"
	"strings"
)

// The errors that code tests for by errors.Is.
var (
	ErrNoRegistry   = errors.New("not a registry")
	ErrNotFound     = errors.New("plugin not found")
	ErrBadName      = errors.New("bad plugin name or version")
	ErrBadManifest  = errors.New("bad manifest")
	ErrDigest       = errors.New("digest does not match")
	ErrVersionTaken = errors.New("the version is there with other bytes")
	ErrPlatform     = errors.New("no file for this platform")
	ErrProtocol     = errors.New("protocol version does not fit")
	ErrBadLock      = errors.New("plugins.lock cannot be used")
)

// NotFoundError says which plugin was looked for and what there is instead.
type NotFoundError struct {
	Name, Version string
	Where         string
	Have          []string // versions of that name
}

// Error names both.
func (e *NotFoundError) Error() string {
	ref := e.Name
	if e.Version != "" {
		ref += "@" + e.Version
	}
	if len(e.Have) == 0 {
		return fmt.Sprintf("plugin %s is not in %s", ref, e.Where)
	}
	return fmt.Sprintf("plugin %s is not in %s, which has %s", ref, e.Where, strings.Join(e.Have, ", "))
}

// Is matches ErrNotFound.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }
