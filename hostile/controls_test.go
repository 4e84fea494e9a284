//go:build !windows

package hostile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"rillbox/cache/cachetest"
	"rillbox/deno/binary"
	"rillbox/pyodide"
)

// controls are those that have shown their attack to work. A control tests Deno
// and not us, so that it is run once for each text of these tests, version of
// Deno and kernel, and noted beside the tests' cache.
var controls struct {
	once  sync.Once
	file  string          // empty: none are kept
	base  string          // what all controls depend on
	shown map[string]bool // by hash
}

// onceShown runs the control of the test t, unless it has shown its attack to work
// before.
func onceShown(t *testing.T, control func()) {
	t.Helper()
	if wasShown(t, t.Name()) {
		return
	}
	if control(); !t.Failed() {
		noteShown(t, t.Name())
	}
}

// wasShown says that the control of this name has shown its attack to work before.
func wasShown(t *testing.T, name string) bool {
	t.Helper()
	controls.once.Do(func() { openControls(t) })
	return controls.shown[controlKey(name)]
}

func noteShown(t *testing.T, name string) {
	t.Helper()
	if controls.file == "" {
		return
	}
	f, err := os.OpenFile(controls.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteString(controlKey(name) + "\n"); err != nil { // a short line, so whole
		t.Fatal(err)
	}
}

func controlKey(name string) string {
	hash := sha256.Sum256([]byte(controls.base + name))
	return hex.EncodeToString(hash[:])
}

func openControls(t *testing.T) {
	t.Helper()
	kernel, err := os.ReadFile("/proc/version")
	if err != nil || cachetest.Long() {
		return
	}
	sources, err := filepath.Glob("*.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("these tests have no source in their directory: %v", err)
	}
	hash := sha256.New()
	for _, file := range sources {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", file, len(text), text)
	}
	dir, err := cachetest.Dir()
	if err != nil {
		t.Fatal(err)
	}
	controls.base = fmt.Sprintf("%x %s %s %d\n", hash.Sum(nil), kernel, binary.Version+" "+pyodide.Version, os.Getuid())
	controls.file = filepath.Join(dir, "hostile-controls")
	controls.shown = map[string]bool{}
	text, err := os.ReadFile(controls.file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for key := range strings.Lines(string(text)) {
		controls.shown[strings.TrimSpace(key)] = true
	}
}
