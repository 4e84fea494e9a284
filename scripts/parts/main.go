// Parts writes wasm/parts.json: the npm packages that languages are made of.
//
//	go run ./scripts/parts NAME VERSION LICENSE PATTERN...
//
// It fetches the package from the registry of npm's configuration (npm must be installed),
// and notes its hash and size, and the hash of each file that matches a pattern (DIR/... is
// all below a directory). The file
// is to be read before it is committed: "latest" is not to be trusted, nor is a version
// that nobody has looked at.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

const file = "wasm/parts.json"

type part struct {
	Version string            `json:"version"`
	SHA512  string            `json:"sha512"`
	Size    int64             `json:"size"`
	License string            `json:"license"`
	Files   map[string]string `json:"files"`
}

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: go run ./scripts/parts NAME VERSION LICENSE PATTERN...")
		os.Exit(2)
	}
	if err := update(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Fprintln(os.Stderr, "parts:", err)
		os.Exit(1)
	}
}

func update(name, version, license string, patterns []string) error {
	tarball, err := pack(name + "@" + version)
	if err != nil {
		return err
	}
	hash := sha512.Sum512(tarball)
	p := part{Version: version, SHA512: hex.EncodeToString(hash[:]), Size: int64(len(tarball)), License: license, Files: map[string]string{}}
	if err := p.add(tarball, patterns); err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	all := map[string]part{}
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	all[name] = p
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// pack gives a package's tarball.
func pack(spec string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "parts-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("npm", "pack", "--silent", spec)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("npm pack %s: %w", spec, err)
	}
	return os.ReadFile(filepath.Join(dir, strings.TrimSpace(string(out))))
}

// add notes the files that match a pattern.
func (p *part) add(tarball []byte, patterns []string) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(tarball))
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		_, name, _ := strings.Cut(header.Name, "/")
		for _, pattern := range patterns {
			if ok, err := matches(pattern, name); err != nil {
				return err
			} else if ok && header.Typeflag == tar.TypeReg {
				hash := sha256.New()
				if _, err := io.Copy(hash, files); err != nil {
					return err
				}
				p.Files[name], used[pattern] = hex.EncodeToString(hash.Sum(nil)), true
				break
			}
		}
	}
	for _, pattern := range patterns {
		if !used[pattern] {
			return fmt.Errorf("nothing matches %q", pattern)
		}
	}
	return nil
}

// matches is path.Match, but that "dir/..." is all below a directory.
func matches(pattern, name string) (bool, error) {
	if dir, all := strings.CutSuffix(pattern, "..."); all {
		return strings.HasPrefix(name, dir), nil
	}
	return path.Match(pattern, name)
}
