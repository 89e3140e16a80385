package sdk_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestGuide compares the code that the guide shows with the files it names.
func TestGuide(t *testing.T) {
	data, err := os.ReadFile("GUIDE.md")
	if err != nil {
		t.Fatal(err)
	}
	from := regexp.MustCompile(`^From \[[^]]*\]\(([^)]*)\)`)
	shown, file := 0, ""
	for i, block := range strings.Split(string(data), "```go\n") {
		code, text, fenced := strings.Cut(block, "```\n")
		if !fenced {
			text = block
		}
		if i > 0 {
			shown++
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("code block %d: %v", i, err)
			}
			if !strings.Contains(string(source), code) {
				t.Errorf("code block %d is not in %s:\n%s", i, file, code)
			}
		}
		file = ""
		if lines := strings.Split(strings.TrimSpace(text), "\n"); len(lines) > 0 {
			if m := from.FindStringSubmatch(lines[len(lines)-1]); m != nil {
				file = m[1]
			}
		}
	}
	if shown < 5 {
		t.Errorf("the guide shows %d blocks of code, expected 5 at least", shown)
	}
}
