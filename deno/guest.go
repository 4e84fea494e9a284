//go:build !windows

package deno

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rillbox/supervisor/wire"
)

// The child's side is TypeScript. Each of its entry modules is made into one
// small JavaScript file with all that it imports, once, and kept in the cache:
// as they are, every child would read, transpile and parse them (5 ms of CPU).

//go:embed guest/bootstrap.ts guest/compile.ts guest/display.ts guest/env.ts guest/frames.ts guest/freeze.ts guest/native.ts guest/process.ts
//go:embed guest/require.ts guest/sandbox.ts guest/session.ts guest/stdin.ts guest/system.ts guest/traceback.ts guest/value.ts
var guestSources embed.FS

// HostSource has what engines share whose languages see files of the machine's.
//
//go:embed guest/hostfile.ts guest/hostfs.ts
var HostSource embed.FS

// guestEntries are the modules that children begin with.
var guestEntries = []string{"deno/guest/bootstrap.ts", "deno/guest/compile.ts", "deno/guest/freeze.ts", "deno/guest/session.ts"}

// guestFiles gives the directory in the cache with the guestEntries as .js files.
func (e *Engine) guestFiles(ctx context.Context) (string, error) {
	key := wire.DigestFiles(guestSources, wire.WireSource) + fmt.Sprint(guestEntries, "evaluated")
	dir, _, err := e.options.Cache.Tree(ctx, "guest", key, func(_ context.Context, dir string) error {
		if err := wire.Bundle(dir, map[string]fs.FS{"deno": guestSources, "supervisor/wire": wire.WireSource}, guestEntries...); err != nil {
			return err
		}
		return asText(filepath.Join(dir, "bootstrap.js"))
	})
	if err != nil {
		return "", fmt.Errorf("lay out the files of children: %w", err)
	}
	return dir, nil
}

// asText makes a module without static imports into one that evaluates its
// code as a text. Deno parses modules itself to find their imports, and not
// texts in them (0.9 ms of CPU in each run).
func asText(path string) error {
	code, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	quote := json.NewEncoder(&text)
	quote.SetEscapeHTML(false)
	body := strings.ReplaceAll(string(code), "import.meta.url", "moduleURL")
	if err := quote.Encode("(moduleURL)=>{'use strict';" + body + "\n}"); err != nil {
		return err
	}
	module := "(0,eval)(" + strings.TrimSpace(text.String()) + "+`\n//# sourceURL=${import.meta.url}`)(import.meta.url)\n"
	return os.WriteFile(path, []byte(module), 0o600)
}
