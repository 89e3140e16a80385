package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"time"

	"github.com/datalink-go/datalink/sdk/manifest"
)

// describeTime bounds how long a program may take to print its manifest.
const describeTime = 10 * time.Second

// Manifest runs the program with the argument manifest and returns what it prints:
// what a plugin is, without a task.
func (i *Image) Manifest(ctx context.Context) (*manifest.Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, i.path(), "manifest")
	cmd.Env = []string{}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("plugin %s: ask for its manifest: %w: %.200s", i.Name, err, errs.String())
	}
	m := new(manifest.Manifest)
	if err := json.Unmarshal(out.Bytes(), m); err != nil {
		return nil, fmt.Errorf("plugin %s: its manifest: %w", i.Name, err)
	}
	return m, nil
}
