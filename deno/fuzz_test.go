package deno

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"rillbox/supervisor/job"
	"rillbox/supervisor/wire"
)

// FuzzNeverResolved cuts Deno's words from the end of what the guest wrote.
func FuzzNeverResolved(f *testing.F) {
	f.Add("mine\nerror: Top-level await promise never resolved\nawait x\n^\n    at file:///run/main.ts:1:7\n")
	f.Add("error: Top-level await promise never resolved\n    at <anonymous> (file:///x.ts:2:3)")
	f.Fuzz(func(t *testing.T, text string) {
		for _, omitted := range []int{0, 1} {
			stderr := job.Captured{Head: []byte(text[:len(text)/2]), Tail: []byte(text[len(text)/2:]), Omitted: int64(omitted)}
			place, ok := cutNeverResolved(&stderr)
			left := string(stderr.Head) + string(stderr.Tail)
			if !strings.HasPrefix(text, left) || ok != (left != text) || ok && !strings.Contains(place, ":") {
				t.Errorf("%q left %q, place %q %v", text, left, place, ok)
			}
		}
	})
}

// FuzzInspectorMessage looks for a message that is taken for what it is not.
func FuzzInspectorMessage(f *testing.F) {
	for _, seed := range []string{`{"id":1,"result":{"result":{"type":"number","value":2}}}`, `{"id":2,"error":{"code":-32000,"message":"no"}}`, `{"method":"Runtime.bindingCalled","params":{"payload":"{}"}}`, `{"id":1,"method":"x"}`, `{}`, `{"id":-1}`, `[]`, `null`, `{"id":1e9}`, `{"id":1}{"id":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := decodeMessage(text)
		if err != nil {
			if !errors.Is(err, wire.ErrProtocol) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if (m.ID > 0) == (m.Method != "") {
			t.Errorf("%q is an answer and a notification, or neither", text)
		}
		var e evaluated
		if json.Unmarshal(m.Result, &e) == nil {
			_, _ = json.Marshal(e.Result.argument())
		}
	})
}
