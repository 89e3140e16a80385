package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
)

// The file is mapped into memory and its pages are trusted from then on: a page
// that is missing or wrong would end the process by a fault that nobody can
// catch, or let it hand out a page twice. So the structure is checked before.
// The layout is bbolt's, version 2, on a little-endian machine.
const (
	headerSize  = 16
	elementSize = 16
	metaMagic   = 0xED0CDAED

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10

	bucketElement = 0x01
	noFreelist    = ^uint64(0)
)

// ErrDamaged is wrapped when the file's structure is wrong.
var ErrDamaged = errors.New("the file is damaged")

func damaged(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, a...))
}

// meta is one of the two roots of the file.
type meta struct{ pageSize, root, freelist, pages, tx uint64 }

// readMeta returns the meta at an offset, nil if there is no valid one.
func readMeta(data []byte, at uint64) *meta {
	if uint64(len(data)) < at+headerSize+64 {
		return nil
	}
	b := data[at+headerSize:]
	le := binary.LittleEndian
	h := fnv.New64a()
	h.Write(b[:56])
	if le.Uint32(b) != metaMagic || le.Uint32(b[4:]) != 2 || le.Uint64(b[56:]) != h.Sum64() {
		return nil
	}
	return &meta{uint64(le.Uint32(b[8:])), le.Uint64(b[16:]), le.Uint64(b[32:]), le.Uint64(b[40:]), le.Uint64(b[48:])}
}

// newestMeta returns the meta in force, nil if none is valid.
func newestMeta(data []byte) *meta {
	first := readMeta(data, 0)
	if first == nil { // the page size is not known: as bbolt does, look for the second
		for size := uint64(1 << 10); size <= 1<<16; size <<= 1 {
			if m := readMeta(data, size); m != nil && m.pageSize == size {
				return m
			}
		}
		return nil
	}
	if second := readMeta(data, first.pageSize); second != nil && second.pageSize == first.pageSize && second.tx > first.tx {
		return second
	}
	return first
}

// sound checks the structure of a store's file; one that is not there or empty is
// sound, and one without a root is left to bbolt.
func sound(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	m := newestMeta(data)
	if m == nil {
		return nil
	}
	if m.pageSize < 1<<9 || m.pageSize&(m.pageSize-1) != 0 {
		return damaged("a page size of %d", m.pageSize)
	}
	if m.pages > uint64(len(data))/m.pageSize {
		return damaged("%d bytes are there, %d pages of %d bytes are expected", len(data), m.pages, m.pageSize)
	}
	w := &walk{meta: m, data: data, seen: map[uint64]bool{0: true, 1: true}}
	if err := w.tree(m.root, nil); err != nil {
		return err
	}
	if m.freelist == noFreelist {
		return nil
	}
	return w.free(m.freelist)
}

// walk visits each page that can be reached, once.
type walk struct {
	*meta
	data []byte
	seen map[uint64]bool
}

// page returns the bytes of a page with its overflow, its flags and its count.
func (w *walk) page(id uint64) (p []byte, flags uint16, count int, err error) {
	if id < 2 || id >= w.pages {
		return nil, 0, 0, damaged("page %d is referred to, there are %d", id, w.pages)
	}
	le := binary.LittleEndian
	head := w.data[id*w.pageSize:]
	n := uint64(le.Uint32(head[12:])) + 1
	if le.Uint64(head) != id || n > w.pages-id {
		return nil, 0, 0, damaged("page %d calls itself %d and has %d pages", id, le.Uint64(head), n)
	}
	for i := id; i < id+n; i++ {
		if w.seen[i] {
			return nil, 0, 0, damaged("page %d is used twice", i)
		}
		w.seen[i] = true
	}
	return head[:n*w.pageSize], le.Uint16(head[8:]), int(le.Uint16(head[10:])), nil
}

// tree checks a page and all below it. Least is the key that its parent has for it.
func (w *walk) tree(id uint64, least []byte) error {
	p, flags, count, err := w.page(id)
	if err != nil {
		return err
	}
	return w.elements(p, id, flags, count, least)
}

// elements checks the elements of a branch or leaf page, which may also lie inside
// of a value.
func (w *walk) elements(p []byte, id uint64, flags uint16, count int, least []byte) error {
	if flags != branchPage && flags != leafPage {
		return damaged("page %d is of kind %#x, expected a branch or a leaf", id, flags)
	}
	if headerSize+count*elementSize > len(p) || flags == branchPage && count == 0 {
		return damaged("page %d has %d elements", id, count)
	}
	le := binary.LittleEndian
	before := least
	for i := range count {
		at := headerSize + i*elementSize
		e := p[at:]
		pos, keySize, valueSize := uint64(le.Uint32(e)), uint64(le.Uint32(e[4:])), uint64(0)
		if flags == leafPage {
			pos, keySize, valueSize = uint64(le.Uint32(e[4:])), uint64(le.Uint32(e[8:])), uint64(le.Uint32(e[12:]))
		}
		from := uint64(at) + pos
		if from+keySize+valueSize > uint64(len(p)) {
			return damaged("element %d of page %d reaches beyond it", i, id)
		}
		key := p[from : from+keySize]
		if c := bytes.Compare(key, before); before != nil && (c < 0 || c == 0 && i > 0) {
			return damaged("the keys of page %d do not rise", id)
		}
		before = key
		if before == nil {
			before = []byte{}
		}
		switch {
		case flags == branchPage:
			err := w.tree(le.Uint64(e[8:]), key)
			if err != nil {
				return err
			}
		case le.Uint32(e)&bucketElement != 0:
			if err := w.bucket(p[from+keySize:from+keySize+valueSize], id); err != nil {
				return err
			}
		}
	}
	return nil
}

// bucket checks a bucket, which has pages of its own or lies inside of its value.
func (w *walk) bucket(value []byte, id uint64) error {
	if len(value) < 16 {
		return damaged("a bucket in page %d has %d bytes", id, len(value))
	}
	le := binary.LittleEndian
	if root := le.Uint64(value); root != 0 {
		return w.tree(root, nil)
	}
	p := value[16:]
	if len(p) < headerSize {
		return damaged("a bucket in page %d has %d bytes", id, len(value))
	}
	if flags := le.Uint16(p[8:]); flags != leafPage {
		return damaged("a bucket in page %d is of kind %#x, expected a leaf", id, flags)
	}
	return w.elements(p, id, leafPage, int(le.Uint16(p[10:])), nil)
}

// free checks that no page in use is listed as free.
func (w *walk) free(id uint64) error {
	p, flags, count, err := w.page(id)
	if err != nil {
		return err
	}
	if flags != freelistPage {
		return damaged("page %d is of kind %#x, expected the list of free pages", id, flags)
	}
	le := binary.LittleEndian
	ids, n := p[headerSize:], uint64(count)
	if n == 0xFFFF {
		if len(ids) < 8 {
			return damaged("the list of free pages is cut off")
		}
		ids, n = ids[8:], le.Uint64(ids)
	}
	if n > uint64(len(ids))/8 {
		return damaged("the list of free pages is cut off")
	}
	for i := range n {
		f := le.Uint64(ids[i*8:])
		if f < 2 || f >= w.pages || w.seen[f] {
			return damaged("page %d is listed as free, but is in use or not there", f)
		}
		w.seen[f] = true
	}
	return nil
}
