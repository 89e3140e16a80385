package crashtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// model generates transactions and knows what a target holds after them: k has a
// key, which changes change too, log has none and gets rows alone, some of them
// equal.
type model struct {
	rng   *rand.Rand
	lines bytes.Buffer
	keyed map[int64]string
	ids   []int64 // of keyed, in an order that depends on the seed only
	log   []string
	next  int64
	tx    int
}

type change struct {
	Table  string `json:"table"`
	Op     string `json:"op"`
	Before []any  `json:"before,omitempty"`
	After  []any  `json:"after,omitempty"`
}

func newModel(seed uint64) *model {
	m := &model{rng: rand.New(rand.NewPCG(seed, 0)), keyed: map[int64]string{}}
	for _, t := range []string{
		`{"table":"k","database":"crash","columns":[{"name":"id","type":"bigint"},{"name":"v","type":"varchar"}],"key":["id"]}`,
		`{"table":"log","database":"crash","columns":[{"name":"n","type":"bigint"},{"name":"v","type":"varchar"}]}`,
	} {
		m.lines.WriteString(t + "\n")
	}
	return m
}

// transactions adds n small ones.
func (m *model) transactions(n int) {
	for range n {
		var tx []change
		for range 1 + m.rng.IntN(4) {
			tx = append(tx, m.change())
		}
		tx = append(tx, m.append(int64(m.tx), "tx"))
		if m.tx%7 == 0 {
			tx = append(tx, m.append(int64(m.tx), "tx")) // an equal row
		}
		m.add(tx)
	}
}

// large adds one of n rows.
func (m *model) large(n int) {
	var tx []change
	for i := range n {
		tx = append(tx, m.append(int64(i), fmt.Sprint("large ", m.tx)))
		if i%10 == 0 {
			tx = append(tx, m.change())
		}
	}
	m.add(tx)
}

func (m *model) add(tx []change) {
	m.tx++
	line, err := json.Marshal(map[string]any{"tx": tx})
	if err != nil {
		panic(err)
	}
	m.lines.Write(append(line, '\n'))
}

func (m *model) append(n int64, v string) change {
	m.log = append(m.log, fmt.Sprintf("%d|%s", n, v))
	return change{Table: "log", Op: "insert", After: []any{n, v}}
}

// change inserts, updates, gives another key, or deletes.
func (m *model) change() change {
	what := m.rng.IntN(10)
	if len(m.ids) < 20 || what < 3 {
		id := m.next
		m.next++
		m.ids = append(m.ids, id)
		m.keyed[id] = m.value()
		return change{Table: "k", Op: "insert", After: []any{id, m.keyed[id]}}
	}
	at := m.rng.IntN(len(m.ids))
	id := m.ids[at]
	before := []any{id, m.keyed[id]}
	switch {
	case what < 6:
		m.keyed[id] = m.value()
		return change{Table: "k", Op: "update", Before: before, After: []any{id, m.keyed[id]}}
	case what < 8:
		other := m.next
		m.next++
		m.ids[at] = other
		m.keyed[other] = m.keyed[id]
		delete(m.keyed, id)
		return change{Table: "k", Op: "update", Before: before, After: []any{other, m.keyed[other]}}
	}
	m.ids = slices.Delete(m.ids, at, at+1)
	delete(m.keyed, id)
	return change{Table: "k", Op: "delete", Before: before}
}

func (m *model) value() string { return fmt.Sprintf("value %d, %06d", m.tx, m.rng.IntN(1_000_000)) }

// write makes a binary log of the transactions.
func (m *model) write(path string) error {
	cmd := exec.Command(built.binloggen)
	cmd.Stdin = bytes.NewReader(m.lines.Bytes())
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("binloggen: %w: %s", err, errs.String())
	}
	return os.WriteFile(path, out, 0o600)
}

// kept is how many characters the mask leaves.
const kept = 4

// rows returns what the target holds at the end, by table, each sorted.
func (m *model) rows(masked bool) expected {
	out := map[string][]string{"k": {}, "log": slices.Sorted(slices.Values(m.log))}
	for id, v := range m.keyed {
		if masked {
			v = strings.Repeat("*", len(v)-kept) + v[len(v)-kept:]
		}
		out["k"] = append(out["k"], fmt.Sprintf("%d|%s", id, v))
	}
	slices.Sort(out["k"])
	return expected{rows: out}
}
