package main

import (
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/datalink-go/datalink/sdk/batch"
)

// text returns a value as text. What is neither a number, nor a time, nor text
// itself is given in hexadecimal.
func text(c *batch.Column, v *batch.Value) string {
	if v.State == batch.Raw {
		_, data, _ := v.Raw()
		return hex.EncodeToString(data)
	}
	if t, ok := batch.AppendText(nil, c, v); ok {
		return string(t)
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
