//go:build !windows

package launcher

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// FuzzKept gives the keeper lines: what it will kill is never everything.
func FuzzKept(f *testing.F) {
	for _, seed := range []string{`{"group":5,"dir":"/x"}` + "\n" + `{"group":5,"gone":true}`, `{"group":0}{"group":-1}{"group":1}`, `{"group":7,"cgroup":["/a"]}{"gro`, "", "[]", `{"group":9e99}`, "\x00\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		left := readKept(strings.NewReader(lines))
		for group, k := range left {
			if group <= 1 || k.Group != group || k.Gone {
				t.Errorf("%q leaves %+v", lines, k)
			}
		}
		// A good line after good lines is heard.
		again := ""
		for _, k := range left {
			line, err := json.Marshal(k)
			if err != nil {
				t.Fatal(err)
			}
			again += string(line) + "\n"
		}
		if children := readKept(strings.NewReader(again + `{"group":2147483647}` + "\n" + `{"group":2`)); len(children) < len(left) || children[2147483647].Group == 0 {
			t.Errorf("%q leaves %+v", again, children)
		}
	})
}

// FuzzPolicy reads policies: those that are read are those that were written.
func FuzzPolicy(f *testing.F) {
	var written strings.Builder
	if err := WritePolicy(&written, Policy{Wall: &Wall{ReadOnly: []string{"/a"}, Connect: []uint16{80}}, Nice: 5, FileBytes: 1}); err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{written.String(), "{}", "", "null", `{"nice":99}`, `{"wall":{}}{}`, `{"walls":{}}`, `{"open_files":-1}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := readPolicy(strings.NewReader(text))
		if err != nil {
			return
		}
		var written strings.Builder
		if err := WritePolicy(&written, p); err != nil {
			t.Fatal(err)
		}
		again, err := readPolicy(strings.NewReader(written.String()))
		if err != nil || !sameJSON(t, p, again) {
			t.Errorf("%q became %q, then %+v %v", text, written.String(), again, err)
		}
	})
}

// sameJSON is reflect.DeepEqual where empty lists are as good as none.
func sameJSON(t *testing.T, a, b Policy) bool {
	t.Helper()
	one, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	other, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(one, other)
}
