//go:build !windows

package wire

import (
	"archive/tar"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// DigestFiles changes with any of the files that are embedded.
func DigestFiles(trees ...embed.FS) string {
	hash := sha256.New()
	for _, tree := range trees {
		if err := tar.NewWriter(hash).AddFS(tree); err != nil {
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
