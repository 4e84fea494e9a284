package wire

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
)

// shown is what becomes of frames that follow the start of a program.
func shown(limit int64, lines ...string) (Outcome, job.Result) {
	frames := NewFrameReader(strings.NewReader(ready+strings.Join(lines, "\n")+"\n"), 1000)
	frames.AllowDisplays(limit)
	o := ReadOutcome(frames, nil, nil)
	return o, o.Into(sandbox.Exit{Status: job.Completed})
}

const ended = `{"type":"result"}`

func TestDisplays(t *testing.T) {
	for _, test := range []struct {
		name, frame string
		want        job.Display // nil for none
		note        string      // a part of the only note; empty for none
	}{
		{"text and a picture", `{"type":"display","data":{"text/plain":"a","image/png":"iVBORw0KGgo="}}`, job.Display{"text/plain": "a", "image/png": "iVBORw0KGgo="}, ""},
		{"SVG is text", `{"type":"display","data":{"image/svg+xml":"<svg/>"}}`, job.Display{"image/svg+xml": "<svg/>"}, ""},
		{"JSON", `{"type":"display","data":{"application/json":{"a":[1]}}}`, job.Display{"application/json": `{"a":[1]}`}, ""},
		{"parameters", `{"type":"display","data":{"text/html; charset=utf-8":"x"}}`, job.Display{"text/html; charset=utf-8": "x"}, ""},
		{"a note", `{"type":"display","data":{"text/plain":"a"},"note":"its HTML failed"}`, job.Display{"text/plain": "a"}, "its HTML failed"},
		{"no picture", `{"type":"display","data":{"image/png":"not base64!"}}`, nil, "image/png is not base64"},
		{"no picture, but text", `{"type":"display","data":{"image/png":[1],"text/plain":"a"}}`, job.Display{"text/plain": "a"}, "image/png is not base64"},
		{"no MIME type", `{"type":"display","data":{"a b":"x"}}`, nil, `"a b" is no MIME type`},
		{"nothing", `{"type":"display","data":{}}`, nil, ""},
		{"not even that", `{"type":"display"}`, nil, ""},
		{"one left out", `{"type":"display","left_out":1}`, nil, "1 display was left out"},
	} {
		o, r := shown(1000, test.frame, ended)
		if o.Err != nil {
			t.Errorf("%s: %v", test.name, o.Err)
		}
		var have job.Display
		if len(r.Displays) > 0 {
			have = r.Displays[0]
		}
		if len(r.Displays) > 1 || !maps.Equal(have, test.want) {
			t.Errorf("%s: have %v, want %v", test.name, r.Displays, test.want)
		}
		if notes := strings.Join(r.Notes, "\n"); (notes == "") != (test.note == "") || !strings.Contains(notes, test.note) {
			t.Errorf("%s: notes %q, want %q", test.name, notes, test.note)
		}
	}
}

// TestDisplaysAreBounded: an honest child keeps to the bounds and says what it
// left out; another breaks the protocol, or is cut.
func TestDisplaysAreBounded(t *testing.T) {
	small := `{"type":"display","data":{"text/plain":"a"}}`
	many := strings.Split(strings.TrimSpace(strings.Repeat(small+"\n", MaxDisplays+5)), "\n")
	_, r := shown(1<<20, append(many, `{"type":"display","left_out":2}`, ended)...)
	if len(r.Displays) != MaxDisplays || len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "7 displays were left out") {
		t.Errorf("%d displays, notes %q", len(r.Displays), r.Notes)
	}
	if _, r = shown(1<<20, `{"type":"display","left_out":4}`); len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "at least 4 displays") {
		t.Errorf("of a program that did not end: %q", r.Notes)
	}
	var forms []string
	for i := range maxForms + 5 {
		forms = append(forms, fmt.Sprintf(`"text/x%d":""`, i))
	}
	if _, r = shown(1<<20, `{"type":"display","data":{`+strings.Join(forms, ",")+`}}`, ended); len(r.Displays) != 1 || len(r.Displays[0]) != maxForms || len(r.Notes) != 1 {
		t.Errorf("many forms: %d, notes %q", len(r.Displays[0]), r.Notes)
	}
	long := `{"type":"display","data":{"text/plain":"` + strings.Repeat("x", 2000) + `"}}`
	for name, test := range map[string]struct {
		limit int64
		lines []string
	}{
		"one too large":     {1000, []string{long}},
		"all too large":     {5000, []string{long, long, long}},
		"before they may":   {0, []string{small}},
		"no object":         {1000, []string{`{"type":"display","data":3}`}},
		"value by the back": {1 << 20, []string{`{"type":"result","value":"` + strings.Repeat("x", 2000) + `"}`}},
	} {
		if o, r := shown(test.limit, append(test.lines, ended)...); !errors.Is(o.Err, ErrProtocol) || r.Status != job.Failed {
			t.Errorf("%s: %v, %s", name, o.Err, r.Status)
		}
	}
}
