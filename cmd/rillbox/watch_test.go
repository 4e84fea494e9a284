//go:build !windows

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAProgramIsRunAgainWhenItChanges: also one that hangs, and one that can't be read.
func TestAProgramIsRunAgainWhenItChanges(t *testing.T) {
	needRuntimes(t)
	dir := t.TempDir()
	write := func(name, code string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file+".new", []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil { // as editors do
			t.Fatal(err)
		}
	}
	write("word.ts", `export const word = "first";`)
	write("main.ts", `import { word } from "./word.ts"; console.log(word);`)
	cmd := exec.CommandContext(t.Context(), "rillbox", "run", "--watch", filepath.Join(dir, "main.ts"))
	cmd.Env = append(os.Environ(), scriptEnvironment(t, dir)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	next := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("it ends without %q", want)
	}
	next("first")
	next("waiting")
	write("word.ts", `export const word = "second";`)
	next("second")
	write("main.ts", "\xff")
	next("not UTF-8")
	write("main.ts", `console.log("hangs"); for (;;);`)
	next("hangs")
	write("main.ts", `import { word } from "./word.ts"; console.log("third", word);`)
	next("third second")
	next("waiting")
	write("main.ts", `import { word } from "#word"; console.log("named", word);`)
	next("waiting") // nothing says yet what #word is
	write("deno.json", `{"imports": {"#word": "./word.ts"}}`)
	next("named second")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != statusCancelled {
		t.Errorf("it ends with %v", cmd.ProcessState)
	}
}
