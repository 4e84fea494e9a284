// Page bundles the playground's sources, server/web/page/src, with the npm packages that
// package-lock.json pins, into server/web/page/assets/page.js, and their licences into
// notice.txt beside it. The same sources always make the same bytes. It needs npm:
//
//	go run ./scripts/page
package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

const (
	sources = "server/web/page/src"
	assets  = "server/web/page/assets"
	self    = "scripts/page"
)

func main() {
	if err := bundle("."); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

// bundle writes the assets of the repository at root.
func bundle(root string) error {
	npm := exec.Command("npm", "ci", "--omit=dev", "--ignore-scripts", "--silent", "--prefix", filepath.Join(root, self))
	npm.Stderr = os.Stderr
	if err := npm.Run(); err != nil {
		return fmt.Errorf("npm ci: %w", err)
	}
	modules, err := filepath.Abs(filepath.Join(root, self, "node_modules"))
	if err != nil {
		return err
	}
	digest, err := inputs(root)
	if err != nil {
		return err
	}
	result := api.Build(api.BuildOptions{
		EntryPoints:   []string{filepath.Join(root, sources, "main.ts")},
		Bundle:        true,
		Format:        api.FormatESModule,
		Target:        api.ES2022,
		Charset:       api.CharsetUTF8,
		LegalComments: api.LegalCommentsNone, // notice.txt has them
		NodePaths:     []string{modules},
		Banner:        map[string]string{"js": banner(digest)},
		Plugins:       []api.Plugin{pinned(modules)},
		Metafile:      true,

		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
	})
	if len(result.Errors) > 0 {
		return fmt.Errorf("%s", strings.Join(api.FormatMessages(result.Errors, api.FormatMessagesOptions{}), ""))
	}
	notice, err := notice(result.Metafile, modules)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, assets, "notice.txt"), []byte(notice), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, assets, "page.js"), result.OutputFiles[0].Contents, 0o644)
}

// banner is the bundle's first line.
func banner(digest string) string { return "// Made by scripts/page of sources " + digest }

// inputs is the digest of all that the bundle is made of.
func inputs(root string) (string, error) {
	files, err := filepath.Glob(filepath.Join(root, sources, "*.ts"))
	if err != nil {
		return "", err
	}
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.ts") })
	files = append(files, filepath.Join(root, self, "package-lock.json"), filepath.Join(root, self, "main.go"))
	sum := sha256.New()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", filepath.Base(file), len(text), text)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

var specifier = regexp.MustCompile(`^npm:((?:@[^/]+/)?[^/@]+)@(.+)$`)

// pinned resolves npm: specifiers, with which Deno checks the sources, to the packages
// that npm installed. Their versions must be the same.
func pinned(modules string) api.Plugin {
	return api.Plugin{Name: "pinned", Setup: func(build api.PluginBuild) {
		build.OnResolve(api.OnResolveOptions{Filter: "^npm:"}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
			parts := specifier.FindStringSubmatch(a.Path)
			if parts == nil {
				return api.OnResolveResult{}, fmt.Errorf("%s names no package with its exact version", a.Path)
			}
			installed, err := readPackage(filepath.Join(modules, parts[1]))
			if err != nil {
				return api.OnResolveResult{}, err
			}
			if installed.Version != parts[2] {
				return api.OnResolveResult{}, fmt.Errorf("%s: package.json has %s", a.Path, installed.Version)
			}
			found := build.Resolve(parts[1], api.ResolveOptions{ResolveDir: filepath.Dir(modules), Kind: a.Kind})
			return api.OnResolveResult{Path: found.Path, Errors: found.Errors}, nil
		})
	}}
}

type npmPackage struct{ Name, Version, License string }

func readPackage(dir string) (p npmPackage, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("%s: %w", dir, err)
	}
	return p, nil
}

// notice has the licences of the packages in a bundle.
func notice(metafile, modules string) (string, error) {
	var meta struct {
		Inputs map[string]struct{} `json:"inputs"`
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return "", err
	}
	packages := map[string]bool{}
	for input := range meta.Inputs {
		if _, path, ok := strings.Cut(filepath.ToSlash(input), "node_modules/"); ok {
			parts := strings.Split(path, "/")
			packages[strings.Join(parts[:1+strings.Count(parts[0], "@")], "/")] = true
		}
	}
	var b strings.Builder
	b.WriteString("page.js contains these packages.\n")
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		p, err := readPackage(filepath.Join(modules, name))
		if err != nil {
			return "", err
		}
		license, err := os.ReadFile(filepath.Join(modules, name, "LICENSE"))
		if err != nil {
			return "", fmt.Errorf("a licence that must be named: %w", err)
		}
		fmt.Fprintf(&b, "\n%s %s (%s)\n\n%s\n", p.Name, p.Version, cmp.Or(p.License, "no licence named"), strings.TrimSpace(string(license)))
	}
	return b.String(), nil
}
