package launcher

import (
	"encoding/json"
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
			if group <= 1 || k.Group != group || k.Gone && k.Dir == "" && len(k.Cgroup) == 0 {
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
