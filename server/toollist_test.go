package server

import (
	"slices"
	"testing"
)

func TestToolLists(t *testing.T) {
	for _, row := range []struct {
		list ToolList
		tool string
		want bool
	}{
		{ToolList{}, "run_code", true},
		{ToolList{Allow: []string{"run_code"}}, "run_code", true},
		{ToolList{Allow: []string{"run_code"}}, "read_file", false},
		{ToolList{Allow: []string{"*_file"}, Deny: []string{"write_*"}}, "read_file", true},
		{ToolList{Allow: []string{"*_file"}, Deny: []string{"write_*"}}, "write_file", false},
		{ToolList{Deny: []string{"run_code"}}, "Run_code", true},
		{ToolList{Allow: []string{"[a"}}, "a", false},
	} {
		if got := row.list.Has(row.tool); got != row.want {
			t.Errorf("%+v has %s: %v", row.list, row.tool, got)
		}
	}
	list := ToolList{Allow: []string{"run_code", "*_files", "[r"}, Deny: []string{"runcode", "*"}}
	if got := list.Unknown([]string{"run_code", "read_file"}); !slices.Equal(got, []string{"*_files", "[r", "runcode"}) {
		t.Errorf("unknown are %q", got)
	}
}
