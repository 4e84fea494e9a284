// Package manifest reads the files that say what a program's project needs: package.json,
// deno.json, import maps. File names and bytes go in, a job.Manifest comes out, and a
// line for each thing in them that is not honoured.
//
// All of it may come with a repository that somebody else made. So files are read through
// a Source, which leads nowhere out of the project, are bounded in number and size, and
// become plain data: names, versions, digests and paths that stay in the project.
package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"rillbox/supervisor/job"
)

// Bounds of what is read.
const (
	maxFile     = 1 << 20 // bytes of a manifest
	maxFiles    = 1000    // that are asked for
	maxEntries  = 5000    // names in all manifests together
	maxPatterns = 100     // of these, that have a "*"
)

// Project finds the directory whose manifests are a program's: the root of its
// repository, which has .git, or the program's own where there is none. It is never above
// the user's home, and never one that anybody may write: its manifests could be another
// user's. program is the real path of the program's file.
func Project(program string) string {
	own := filepath.Dir(program)
	home, err := os.UserHomeDir()
	if err == nil {
		home, err = filepath.EvalSymlinks(home)
	}
	if err != nil {
		home = ""
	}
	for dir := own; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode()&0o002 != 0 {
			return own
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == home || dir == filepath.Dir(dir) {
			return own
		}
	}
}

// Read reads the manifests of a program with this text, whose file's path from the project
// is given. Of several the nearest comes first. notes are what is not honoured, a line each.
func Read(read Source, program, code string, language job.Language) (m job.Manifest, notes []string, err error) {
	r := &reader{read: read, base: path.Dir(program), m: &m}
	switch language {
	case job.JavaScript, job.TypeScript:
		err = r.javaScript()
	case job.Python:
		err = r.python(program, code)
	}
	return m, r.notes, err
}

// reader reads manifests into m.
type reader struct {
	read  Source
	base  string // the program's directory, from the project's
	from  string // where its user is, if that is another: the way from there to base
	m     *job.Manifest
	notes []string
	files int
	names int
	// patterns is how many names have a "*": each is compared with each import.
	patterns int
	// required are the names of Python's requirements.
	required map[string]bool
	// What deno.json says of lock files: that there is none, or where it is.
	noLock bool
	lockAt string
}

// folders are those with the program's manifests: its own first, the project's last.
func (r *reader) folders() []string {
	folders := []string{r.base}
	for dir := r.base; dir != "."; {
		dir = path.Dir(dir)
		folders = append(folders, dir)
	}
	return folders
}

// file gives a file of the project; nil where there is none.
func (r *reader) file(name string, limit int64) ([]byte, error) {
	if r.files++; r.files > maxFiles {
		return nil, fmt.Errorf("the project has more than %d manifests, which is all that are read", maxFiles)
	}
	text, err := r.read.ReadFile(name, limit+1)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s can't be read: %w", r.called(name), err)
	case int64(len(text)) > limit:
		return nil, fmt.Errorf("%s has more than %d KiB, which is all that is read of it", r.called(name), limit>>10)
	}
	if text == nil {
		text = []byte{}
	}
	return text, nil
}

// called is how people are told of a file: by its path from the program's directory, or from
// their own.
func (r *reader) called(name string) string {
	if r.from != "" {
		return filepath.Join(r.from, filepath.FromSlash(r.path(name)))
	}
	return strings.TrimPrefix(r.path(name), "./")
}

// path is a path of the project's as one from the program's directory, which begins with
// "./" or "../".
func (r *reader) path(name string) string {
	rel, err := filepath.Rel(r.base, name)
	if err != nil { // both are paths from the project, so it can't be
		rel = name
	}
	if rel = filepath.ToSlash(rel); rel != ".." && !strings.HasPrefix(rel, "../") {
		rel = "./" + rel
	}
	if strings.HasSuffix(name, "/") {
		rel = strings.TrimSuffix(rel, "/.") + "/"
	}
	return rel
}

// note says once that something is not honoured.
func (r *reader) note(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(r.notes, line) && len(r.notes) < 100 {
		r.notes = append(r.notes, line)
	}
}

// counted is an error if there are too many names.
func (r *reader) counted(more int) error {
	if r.names += more; r.names > maxEntries {
		return fmt.Errorf("the project's manifests have more than %d names, which is all that are read", maxEntries)
	}
	return nil
}

// add maps a name unless a nearer manifest does.
func (r *reader) add(to map[string]string, name, target string) {
	if _, nearer := to[name]; nearer {
		return
	}
	if strings.Contains(name, "*") {
		if r.patterns++; r.patterns > maxPatterns {
			r.note("%.200q is not honoured: the project has more than %d names with *", name, maxPatterns)
			return
		}
	}
	to[name] = target
}

// refuse says why a name can't be had.
func (r *reader) refuse(name, format string, args ...any) {
	if r.m.Refused == nil {
		r.m.Refused = map[string]string{}
	}
	r.add(r.m.Refused, name, fmt.Sprintf(format, args...))
}
