//go:build !windows

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"rillbox/supervisor"
)

// shared is the directory that the setting workspace names, by its real path, which
// is empty when it names none. One that is not to be shared is a wrong setting.
func (a *app) shared() (supervisor.Shared, error) {
	want := a.config.Workspace
	if want.Path == "" {
		return want, nil
	}
	path, err := realPath(want.Path)
	if err == nil {
		err = a.checkShared(path, want.ReadOnly)
	}
	if err != nil {
		return want, usageError{fmt.Errorf("workspace %q: %w", want.Path, err)}
	}
	return supervisor.Shared{Path: path, ReadOnly: want.ReadOnly}, nil
}

// checkShared refuses a directory that contains, or is in, one that Rillbox itself
// needs, and one that is a whole home or machine.
func (a *app) checkShared(path string, readOnly bool) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", path)
	}
	if home, err := os.UserHomeDir(); err == nil && contains(path, home) {
		return fmt.Errorf("%s holds your whole home directory: share one within it, made for the purpose", path)
	}
	if contains(path, os.TempDir()) {
		return fmt.Errorf("%s holds the directories of running programs: share one within it, made for the purpose", path)
	}
	if contains(path, a.config.CacheDir) || contains(a.config.CacheDir, path) {
		return fmt.Errorf("%s and the cache, %s, overlap: programs must not reach what is executed for them", path, a.config.CacheDir)
	}
	if readOnly {
		return nil
	}
	if own := a.ownFileIn(path); own != "" {
		return fmt.Errorf("%s holds %s, which programs could replace: share it with %s, or another one", path, own, readOnlySuffix)
	}
	return nil
}

// ownFileIn is a file in a directory that is executed, or read as settings, at the
// next start: Rillbox itself, a Deno or Pyodide of the operator's own, or the
// configuration; empty when there is none.
func (a *app) ownFileIn(dir string) string {
	executable, _ := os.Executable() // "" is in no directory
	for _, own := range []string{executable, a.config.Engine.DenoPath, a.config.Engine.Path, a.config.file} {
		if own != "" && contains(dir, own) {
			return own
		}
	}
	return ""
}

// checkWriteGrants refuses a directory to write to in which a program could replace
// one of our own files, or a link on the way to the cache or to the directories of
// runs. A grant of everything is one of these, too.
func (a *app) checkWriteGrants() error {
	for _, permissions := range a.config.Permissions {
		_, writes := permissions.Allowed("write")
		for _, path := range writes {
			if own := a.ownFileIn(path); own != "" {
				return fmt.Errorf("--allow-write=%s holds %s, which programs could replace: grant a directory within it, made for the purpose", path, own)
			}
			for _, way := range []string{a.config.CacheDir, os.TempDir()} {
				if rel, err := filepath.Rel(path, way); err == nil && filepath.IsLocal(rel) && !contains(path, way) {
					return fmt.Errorf("--allow-write=%s holds a link on the way to %s, which programs could replace: name that by its real path, or grant another directory", path, way)
				}
			}
		}
	}
	return nil
}

// contains says whether dir is path, or has it below.
func contains(dir, path string) bool {
	for _, p := range []*string{&dir, &path} {
		if real, err := realPath(*p); err == nil {
			*p = real
		}
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}
