//go:build !windows

package wasm

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"rillbox/supervisor/job"
)

var golang = language{
	LanguageInfo: job.LanguageInfo{
		Name: "go", Title: "Go", Aliases: []string{"golang"}, Extensions: []string{".go"},
	},
	version:       "of setup",
	guest:         "go",
	compiler:      "golang",
	compilerFlags: []string{"--liftoff-only"},
	flags:         []string{"--liftoff-only"},
	sources:       []string{".go", ".mod"},
	toolchain:     true,
}

// goToolchain is the script that builds the toolchain with a Go of the machine's.
//
//go:embed go-toolchain.sh
var goToolchain string

// goPart is the part that the toolchain is to its children, goKey the cache's key of it.
const goPart = "go"

var goKey = "go " + goToolchain

// toolchainKind is the cache's kind of what is built with tools of the machine's.
const toolchainKind = "toolchain"

// noToolchain says that a language's tools were not built. A program does not have them
// built: that runs programs of the machine's.
const noToolchain = "Go's compiler is not here yet: `rillbox setup go` builds it with the Go of this machine (1.24 or later)"

// toolchain gives the directory of Go's tools; build has them built if they are not there.
func (e *Engine) toolchain(ctx context.Context, emit func(job.Event), build bool) (string, error) {
	if !build {
		if !e.o.Cache.HasTree(toolchainKind, goKey) {
			return "", &job.ProgramError{Text: noToolchain}
		}
		return e.o.Cache.GetTree(toolchainKind, goKey)
	}
	dir, _, err := e.o.Cache.Tree(ctx, toolchainKind, goKey, func(ctx context.Context, dir string) error {
		emit(job.Event{Kind: job.Stage, Text: "building Go's compiler, linker and standard library"})
		cmd := exec.CommandContext(ctx, "bash", "-c", goToolchain, "go-toolchain", dir)
		var words bytes.Buffer
		cmd.Stderr = &words
		cmd.Dir = os.TempDir()
		if err := cmd.Run(); err != nil {
			lines := strings.Split(strings.TrimSpace(words.String()), "\n")
			return fmt.Errorf("%w: %s", err, lines[len(lines)-1])
		}
		return nil
	})
	return dir, err
}

// goVersion is the version of the Go that the toolchain was built with.
func goVersion(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "VERSION"))
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(string(text)), "go")
}
