//go:build !windows

package wasm

import (
	"os/exec"
	"testing"

	"rillbox/cache/cachetest"
	"rillbox/supervisor/job"
)

// TestOneLiners compares the shell's one-liners with the machine's bash and programs, of
// which other versions may print other words.
func TestOneLiners(t *testing.T) {
	if !cachetest.Long() {
		t.Skip("it compares with the programs of this machine: scripts/test --long")
	}
	rt, err := newTestEngine(t).runtime(t.Context(), bash, func(job.Event) {})
	cachetest.NeedNetwork(t, err)
	cmd := exec.CommandContext(t.Context(), "../scripts/shell-compare", rt.deno, rt.parts["just-bash"])
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
