package main

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"

	"github.com/datalink-go/datalink/sdk/batch"
)

// text returns a value as text. What is neither a number, nor a time, nor text
// itself is given in hexadecimal.
func text(c *batch.Column, v *batch.Value) string {
	if v.State == batch.Raw {
		_, data, _ := v.Raw()
		return hex.EncodeToString(data)
	}
	switch c.Type {
	case batch.Bool:
		return strconv.FormatBool(v.Uint64() != 0)
	case batch.Int8, batch.Int16, batch.Int32, batch.Int64:
		return strconv.FormatInt(v.Int64(), 10)
	case batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64, batch.Year:
		return strconv.FormatUint(v.Uint64(), 10)
	case batch.Float32:
		return strconv.FormatFloat(v.Float64(), 'g', -1, 32)
	case batch.Float64:
		return strconv.FormatFloat(v.Float64(), 'g', -1, 64)
	case batch.Date:
		return string(batch.AppendDate(nil, int32(v.Int64())))
	case batch.Time:
		return string(batch.AppendTime(nil, v.Int64(), int(c.Scale)))
	case batch.DateTime:
		return string(batch.AppendDateTime(nil, v.Int64(), int(c.Scale)))
	case batch.Timestamp:
		return string(batch.AppendTimestamp(nil, v.Int64(), int(c.Scale)))
	case batch.String, batch.Decimal, batch.JSON, batch.Enum, batch.Set, batch.Inet:
		return string(v.Bytes())
	}
	return hex.EncodeToString(v.Bytes())
}

// replace writes a file beside its place, makes it durable and moves it there.
func replace(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
