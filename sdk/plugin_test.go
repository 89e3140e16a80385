package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/manifest"
)

type nopTransform struct{ suffix string }

func (*nopTransform) Check(context.Context) ([]Finding, error) { return nil, nil }
func (*nopTransform) Close(context.Context) error              { return nil }
func (*nopTransform) Schema(_ context.Context, in *batch.Schema) (*batch.Schema, error) {
	return in, nil
}

func (*nopTransform) Apply(context.Context, *batch.Event, *batch.Schema, *batch.Builder) error {
	return nil
}
func (*nopTransform) Release(context.Context, string) error { return nil }

func testPlugin() *Plugin {
	type config struct {
		Suffix string `config:"suffix" doc:"Text that is added." required:"true"`
	}
	return &Plugin{Name: "nop", Version: "1.2.3", Transform: TransformOf(func(env Env, c config) (*nopTransform, error) {
		if c.Suffix == "bad" {
			return nil, Faultf(CodeRefused, "suffix bad in the role of %s", env.Role)
		}
		return &nopTransform{c.Suffix}, nil
	}).With(manifest.FlatNames)}
}

func TestFactory(t *testing.T) {
	f := testPlugin().Factory(manifest.Transform)
	c, problems, err := f.Open(Env{Role: manifest.Transform}, []byte(`{"suffix":"x"}`))
	if err != nil || len(problems) > 0 || c.(*nopTransform).suffix != "x" {
		t.Errorf("got %v, %v, %v", c, problems, err)
	}
	c, problems, err = f.Open(Env{}, nil)
	if c != nil || err != nil || len(problems) != 1 || problems[0].Path != "suffix" {
		t.Errorf("without configuration: got %v, %v, %v, want a problem with suffix", c, problems, err)
	}
	c, problems, err = f.Open(Env{Role: manifest.Transform}, []byte(`{"suffix":"bad"}`))
	if c != nil || len(problems) > 0 || !errors.Is(err, &Fault{Code: CodeRefused}) || !strings.Contains(err.Error(), "transform") {
		t.Errorf("refused by the constructor: got %v, %v, %v", c, problems, err)
	}
	if testPlugin().Factory(manifest.Reader) != nil {
		t.Error("a role that is not there has a factory")
	}
}

func TestManifest(t *testing.T) {
	data, err := json.MarshalIndent(testPlugin().Manifest("process"), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/manifest.golden", append(data, '\n'))
}
