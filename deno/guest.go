//go:build !windows

package deno

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// The child's side is TypeScript. Each of its entry modules is made into one
// small JavaScript file with all that it imports, once, and kept in the cache:
// as they are, every child would read, transpile and parse them (5 ms of CPU).

//go:embed bootstrap.ts compile.ts display.ts env.ts frames.ts freeze.ts process.ts require.ts session.ts stdin.ts traceback.ts value.ts wire.ts
var guestSources embed.FS

// guestEntries are the modules that children begin with.
var guestEntries = []string{"bootstrap.ts", "compile.ts", "freeze.ts", "session.ts"}

// guestFiles gives the directory in the cache with the guestEntries as .js files.
func (e *Engine) guestFiles(ctx context.Context) (string, error) {
	key := DigestFiles(guestSources) + fmt.Sprint(guestEntries, "evaluated")
	dir, _, err := e.options.Cache.Tree(ctx, "guest", key, func(_ context.Context, dir string) error {
		if err := Bundle(dir, map[string]fs.FS{".": guestSources}, guestEntries...); err != nil {
			return err
		}
		return asText(filepath.Join(dir, "bootstrap.js"))
	})
	if err != nil {
		return "", fmt.Errorf("lay out the files of children: %w", err)
	}
	return dir, nil
}

// DigestFiles changes with any of the files that are embedded.
func DigestFiles(trees ...embed.FS) string {
	hash := sha256.New()
	for _, tree := range trees {
		err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.ts") {
				return err
			}
			text, err := tree.ReadFile(path)
			fmt.Fprintf(hash, "%s %d\n%s", path, len(text), text)
			return err
		})
		if err != nil {
			panic(err) // embedded files can always be read
		}
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// Bundle makes each of the entry modules, which are in sources by the directories
// that these are in, one .js file in dir with all that it imports.
func Bundle(dir string, sources map[string]fs.FS, entries ...string) error {
	root, err := os.MkdirTemp(dir, "src-")
	if err != nil {
		return err
	}
	for name, tree := range sources {
		if err := os.CopyFS(filepath.Join(root, name), tree); err != nil {
			return err
		}
	}
	options := api.BuildOptions{
		Outdir:           dir,
		Bundle:           true,
		Write:            true,
		Format:           api.FormatESModule,
		Target:           api.ESNext,
		External:         []string{"node:*"},
		MinifyWhitespace: true, MinifySyntax: true, MinifyIdentifiers: true,
		TsconfigRaw: "{}",
		LogLevel:    api.LogLevelSilent,
	}
	for _, entry := range entries {
		options.EntryPointsAdvanced = append(options.EntryPointsAdvanced, api.EntryPoint{
			InputPath: filepath.Join(root, entry), OutputPath: strings.TrimSuffix(filepath.Base(entry), ".ts"),
		})
	}
	if result := api.Build(options); len(result.Errors) > 0 {
		return fmt.Errorf("bundle the child's side: %s", result.Errors[0].Text)
	}
	return os.RemoveAll(root)
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
