package launcher

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestCgroupsTellTheirTime as each version writes it, and nothing where it is not
// counted there.
func TestCgroupsTellTheirTime(t *testing.T) {
	for _, row := range []struct {
		unified    bool
		file, text string
		want       time.Duration
		ok         bool
	}{
		{true, "cpu.stat", "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n", 1500 * time.Millisecond, true},
		{true, "cpu.stat", "nr_periods 3\n", 0, false},
		{true, "other", "", 0, false},
		{false, "cpuacct.usage", "2500000000\n", 2500 * time.Millisecond, true},
		{false, "cpu.stat", "nr_periods 0\n", 0, false},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, row.file), []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, ok := (&Cgroup{cpu: dir, unified: row.unified}).CPUTime()
		if got != row.want || ok != row.ok {
			t.Errorf("%+v: %v %v", row, got, ok)
		}
	}
	if _, ok := (*Cgroup)(nil).CPUTime(); ok {
		t.Error("no cgroup tells a time")
	}
}
