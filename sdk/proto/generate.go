//go:build ignore

// Generate writes the Go code of the .proto files. Run it through "make generate":
// the compiler and the two plugins are pinned in .ci/tools.mod, so that nobody who
// imports the SDK inherits them.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// The names under which files are registered begin with their package, so that
// they meet no other file of that name in a program; the folders lack that part.
const (
	root   = "sdk/proto"
	prefix = "datalink/"
)

var sources = []string{prefix + "v1/datalink.proto", prefix + "rowbench/row.proto"}

func main() {
	log.SetFlags(0)
	for _, source := range sources {
		if err := generate(source); err != nil {
			log.Fatalf("generate %s: %v", source, err)
		}
	}
}

func generate(source string) error {
	compiler := protocompile.Compiler{
		Resolver: &protocompile.SourceResolver{Accessor: func(name string) (io.ReadCloser, error) {
			return os.Open(local(name))
		}},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), source)
	if err != nil {
		return err
	}
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{source},
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(files[0])},
	})
	if err != nil {
		return err
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		if err := run(plugin, request); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return nil
}

func local(name string) string { return filepath.Join(root, strings.TrimPrefix(name, prefix)) }

func run(plugin string, request []byte) error {
	cmd := exec.Command("go", "tool", "-modfile=.ci/tools.mod", plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(request), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", *response.Error)
	}
	for _, f := range response.File {
		if err := os.WriteFile(local(f.GetName()), []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
