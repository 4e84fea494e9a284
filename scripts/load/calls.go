//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// measured is what came of calls.
type measured struct {
	mu      sync.Mutex
	calls   int           // answered as they must be
	busy    time.Duration // how long calls went on
	refused int           // told to try again
	bad     []string      // wrong, another's, or never answered
	took    map[string]times
}

func (m *measured) note(change func(*measured)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

// rate is the throughput, in calls a second.
func (m *measured) rate() float64 { return float64(m.calls) / m.busy.Seconds() }

// times are how long calls of one language took.
type times struct {
	whole []time.Duration // from the request to the answer, waiting for a place included
	own   []time.Duration // of the program itself
}

func (t times) String() string {
	return fmt.Sprintf("%v, %v (%v, %v)", quantile(t.whole, 50), quantile(t.whole, 99), quantile(t.own, 50), quantile(t.own, 99))
}

// quantile is what so many of a hundred are not above.
func quantile(list []time.Duration, percent int) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	unit := time.Millisecond
	if sorted[0] >= time.Second {
		unit = 100 * time.Millisecond
	}
	return sorted[(len(sorted)-1)*percent/100].Round(unit)
}

// mark begins each call's token.
const mark = "token-"

var made atomic.Int64

// programs are what is run, in turn; each prints its call's token, and has it as its
// value.
var programs = []struct{ language, code string }{
	{"javascript", `console.log("%[1]s"); export default "%[1]s";`},
	{"typescript", `const token: string = "%[1]s"; console.log(token); export default token;`},
	{"python", "print('%[1]s')\n'%[1]s'"},
	{"javascript", `console.log("%[1]s"); export default "%[1]s";`},
}

// call has the first so many clients call for so long, and returns when all are answered.
func (s *server) call(ctx context.Context, clients int, lasts time.Duration) {
	start := time.Now()
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for n := i; time.Since(start) < lasts; n++ {
				s.one(ctx, s.clients[i], n)
			}
		})
	}
	all.Wait()
	s.note(func(m *measured) { m.busy += time.Since(start) })
}

// one makes a call and judges its answer.
func (s *server) one(ctx context.Context, c *mcp.ClientSession, n int) {
	p := programs[n%len(programs)]
	token := fmt.Sprintf("%s%d.", mark, made.Add(1))
	params := &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{"language": p.language, "code": fmt.Sprintf(p.code, token)}}
	params.SetProgressToken(token)
	start := time.Now()
	r, err := c.CallTool(ctx, params)
	took := time.Since(start)
	if err != nil {
		s.note(func(m *measured) { m.bad = append(m.bad, token+": "+err.Error()) })
		return
	}
	text, _ := json.Marshal(r.Content)
	structured, _ := json.Marshal(r.StructuredContent)
	var out struct {
		Stdout, Result string
		DurationMS     float64 `json:"duration_ms"`
	}
	_ = json.Unmarshal(structured, &out) // what is missing is wrong
	switch {
	case r.IsError && strings.Contains(string(text), "try again in"):
		s.note(func(m *measured) { m.refused++ })
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond) // as it is told to
	case r.IsError || out.Stdout != token+"\n" || out.Result != token:
		s.note(func(m *measured) { m.bad = append(m.bad, fmt.Sprintf("%s got %s %s", token, text, structured)) })
	default:
		s.note(func(m *measured) {
			m.calls++
			if m.took == nil {
				m.took = map[string]times{}
			}
			t := m.took[p.language]
			t.whole = append(t.whole, took)
			t.own = append(t.own, time.Duration(out.DurationMS*float64(time.Millisecond)))
			m.took[p.language] = t
		})
	}
}
