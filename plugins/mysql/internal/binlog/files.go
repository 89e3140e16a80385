package binlog

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrEncrypted is wrapped for logs that the server encrypted.
var ErrEncrypted = errors.New("encrypted binary log")

// File is one file of a log.
type File struct {
	Path   string
	Base   string // name without the number: mysql-bin
	Number uint64 // 0 with Digits 0: the name has none
	Digits int    // as many digits the number has at least
}

// Name returns the name that the server gave to the file.
func (f *File) Name() string { return FileName(f.Base, f.Number, f.Digits) }

// FileName puts a name together again.
func FileName(base string, number uint64, digits int) string {
	if digits == 0 {
		return base
	}
	return fmt.Sprintf("%s.%0*d", base, digits, number)
}

// SplitName takes the name of a file of a log apart. A name whose last part is
// not a number is a base without one.
func SplitName(name string) (base string, number uint64, digits int) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return name, 0, 0
	}
	n, err := strconv.ParseUint(name[i+1:], 10, 64)
	if err != nil || name[i+1:] == "" || name[i+1] == '+' {
		return name, 0, 0
	}
	return name[:i], n, len(name) - i - 1
}

// Find returns the files that the patterns name, ordered by number:
// mysql-bin.999999 comes before mysql-bin.1000000. A pattern with a wildcard
// passes over index files (*.index, *.idx), which lie beside the log; a compressed
// copy beside the file itself is not read twice. Every pattern must match, and all
// files must be of one log.
func Find(patterns []string) ([]File, error) {
	var files []File
	seen := map[string]string{}
	for _, p := range patterns {
		paths, err := filepath.Glob(p)
		if err != nil {
			return nil, fmt.Errorf("files pattern %q: %w", p, err)
		}
		if _, err := os.Stat(p); len(paths) == 0 && err == nil {
			paths = []string{p} // a name that looks like a bad pattern
		}
		found := 0
		for _, path := range paths {
			name := filepath.Base(path)
			wild := path != p
			if wild && (strings.HasSuffix(name, ".index") || strings.HasSuffix(name, ".idx")) {
				continue
			}
			if st, err := os.Stat(path); err != nil {
				return nil, err
			} else if st.IsDir() {
				if wild {
					continue
				}
				return nil, fmt.Errorf("files: %s is a folder; name the files in it, as in %s", path, filepath.Join(path, "mysql-bin.*"))
			}
			found++
			name = strings.TrimSuffix(name, ".gz")
			if seen[name] == path {
				continue
			}
			if other := seen[name]; other != "" {
				if filepath.Dir(other) == filepath.Dir(path) {
					continue // mysql-bin.000001 and mysql-bin.000001.gz
				}
				return nil, fmt.Errorf("files: %s and %s are both %s", other, path, name)
			}
			seen[name] = path
			f := File{Path: path}
			f.Base, f.Number, f.Digits = SplitName(name)
			files = append(files, f)
		}
		if found == 0 {
			return nil, fmt.Errorf("files: nothing matches %q", p)
		}
	}
	slices.SortFunc(files, func(a, b File) int {
		if a.Base != b.Base {
			return strings.Compare(a.Base, b.Base)
		}
		switch {
		case a.Number < b.Number:
			return -1
		case a.Number > b.Number:
			return 1
		}
		return strings.Compare(a.Path, b.Path)
	})
	for i := 1; i < len(files); i++ {
		a, b := &files[i-1], &files[i]
		if a.Base != b.Base {
			return nil, fmt.Errorf("files: %s and %s are of different logs; one task reads the log of one server", a.Path, b.Path)
		}
		if a.Number == b.Number {
			return nil, fmt.Errorf("files: %s and %s have the same number", a.Path, b.Path)
		}
	}
	return files, nil
}

// Source is an open file of a log, at some offset.
type Source struct {
	f  *os.File
	z  *gzip.Reader
	at int64
}

var gzipMagic = []byte{0x1f, 0x8b}

// OpenAt opens the file with its first byte at offset at: 0 is the magic number,
// 4 the first event.
func (f *File) OpenAt(at int64) (*Source, error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	s := &Source{f: file}
	if err := s.begin(at); err != nil {
		_ = file.Close()
		return nil, err
	}
	return s, nil
}

func (s *Source) begin(at int64) error {
	var head [4]byte
	n, err := io.ReadFull(s.f, head[:])
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return err
	}
	if _, err := s.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if n >= 2 && string(head[:2]) == string(gzipMagic) {
		if s.z, err = gzip.NewReader(s.f); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrCorrupt, s.f.Name(), err)
		}
		if n, err = io.ReadFull(s.z, head[:]); err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
			return fmt.Errorf("%w: %s: %w", ErrCorrupt, s.f.Name(), err)
		}
		s.at = int64(n)
	}
	switch {
	case n < 4:
		return fmt.Errorf("%w: %s has %d bytes, a log begins with fe 62 69 6e", ErrCut, s.f.Name(), n)
	case string(head[:]) == "\xfebin":
	case head[0] == 0xfd && string(head[1:]) == "bin":
		return fmt.Errorf("%w: %s was written with binlog_encryption=ON and cannot be read as a file; decrypt it with mysqlbinlog --read-from-remote-server --raw, which writes it in the clear", ErrEncrypted, s.f.Name())
	default:
		return fmt.Errorf("%w: %s begins with % x, a log begins with fe 62 69 6e", ErrCorrupt, s.f.Name(), head[:])
	}
	if s.z == nil {
		st, err := s.f.Stat()
		if err != nil {
			return err
		}
		if at > st.Size() {
			return fmt.Errorf("%w: %s has %d bytes, offset %d was asked for", ErrCut, s.f.Name(), st.Size(), at)
		}
		s.at = at
		_, err = s.f.Seek(at, io.SeekStart)
		return err
	}
	return s.discard(at)
}

func (s *Source) discard(at int64) error {
	if at < s.at {
		return fmt.Errorf("offset %d is behind", at)
	}
	n, err := io.CopyN(io.Discard, s.z, at-s.at)
	s.at += n
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: %s inflates to %d bytes, offset %d was asked for", ErrCut, s.f.Name(), s.at, at)
	}
	return err
}

// Read reads on. A compressed file that is cut off ends like any other.
func (s *Source) Read(p []byte) (int, error) {
	if s.z == nil {
		n, err := s.f.Read(p)
		s.at += int64(n)
		return n, err
	}
	n, err := s.z.Read(p)
	s.at += int64(n)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// Seek moves ahead by off bytes; io.SeekCurrent is the only whence.
func (s *Source) Seek(off int64, whence int) (int64, error) {
	if whence != io.SeekCurrent {
		return s.at, errors.New("only relative seeks")
	}
	if s.z == nil {
		_, err := s.f.Seek(off, io.SeekCurrent)
		s.at += off
		return s.at, err
	}
	err := s.discard(s.at + off)
	if errors.Is(err, ErrCut) {
		err = nil // the read that follows says where
	}
	return s.at, err
}

// Close closes the file.
func (s *Source) Close() error { return s.f.Close() }
