package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/host/config"
)

// TestPages reads the task files that pages show: they are copied.
func TestPages(t *testing.T) {
	for _, page := range []string{"README.md", "../../README.md"} {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		shown := 0
		for _, block := range strings.Split(string(data), "```yaml\n")[1:] {
			text, _, _ := strings.Cut(block, "```")
			if !strings.HasPrefix(text, "apiVersion:") {
				continue
			}
			shown++
			if _, err := config.Parse(page, []byte(text)); err != nil {
				t.Errorf("task file %d of the page: %v", shown, err)
			}
		}
		if shown == 0 {
			t.Errorf("%s: no task file, expected one at least", page)
		}
	}
}

// TestPageIsComplete shows that the page has every key there is.
func TestPageIsComplete(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, err = config.Parse("x", []byte("nokey: 1\nreader: {nokey: 1}\ntransforms: [{nokey: 1}]\nwriters: [{nokey: 1, mappings: [{nokey: 1, columns: {nokey: 1}}]}]\n"))
	keys := 0
	for _, line := range strings.Split(err.Error(), "\n") {
		_, list, ok := strings.Cut(line, "expected one of ")
		if !ok {
			continue
		}
		for _, k := range strings.Split(list, ", ") {
			if keys++; k != "writePriority" && !strings.Contains(string(page), k+":") {
				t.Errorf("README.md does not show the key %s (%s)", k, line)
			}
		}
	}
	if keys < 20 {
		t.Errorf("found %d keys in %v, expected more", keys, err)
	}
}
