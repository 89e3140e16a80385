package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrDigest is wrapped when the bytes of a plugin are not those expected.
var ErrDigest = errors.New("digest does not match")

// Image is the verified program of a plugin, in memory and unchangeable.
type Image struct {
	Name   string
	Digest string // SHA-256, hexadecimal
	file   *os.File
}

// memfdFloor lies above the descriptors a child is given, so that the image's
// own is still there when the child executes it.
const memfdFloor = 100

// OpenImage reads the program at path into memory and compares it with the
// digest. Later changes of the file have no effect on the image.
func OpenImage(name, path, digest string) (*Image, error) {
	src, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", name, err)
	}
	defer src.Close()
	file, err := memfd(name)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: memory file: %w", name, err)
	}
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(file, h), src); err != nil {
		return nil, errors.Join(fmt.Errorf("plugin %s: read %s: %w", name, path, err), file.Close())
	}
	if got := hex.EncodeToString(h.Sum(nil)); !strings.EqualFold(got, digest) {
		return nil, errors.Join(fmt.Errorf("plugin %s: %w: %s has sha256 %s, expected %s; install it again", name, ErrDigest, path, got, digest), file.Close())
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return nil, errors.Join(fmt.Errorf("plugin %s: seal memory file: %w", name, err), file.Close())
	}
	return &Image{Name: name, Digest: strings.ToLower(digest), file: file}, nil
}

// Close frees the memory. Processes that run the image keep it.
func (i *Image) Close() error { return i.file.Close() }

// path is valid in the host and in a child until it has executed it.
func (i *Image) path() string { return fmt.Sprintf("/proc/self/fd/%d", i.file.Fd()) }

func memfd(name string) (*os.File, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 all are executable
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, memfdFloor)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(high), name), nil
}
