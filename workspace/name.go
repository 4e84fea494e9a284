package workspace

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Mount is the absolute path that stands for the workspace in clients' names,
// and where Python sees it.
const Mount = "/workspace"

// The longest path and the longest name in it, in bytes (Linux's own), and how
// deep folders nest.
const (
	maxPath  = 4096
	maxName  = 255
	maxDepth = 64
)

// parse makes of a client's name a path from the workspace, without "." and
// doubled or trailing slashes; "." is the workspace itself. It never has "..".
func parse(name string) (string, error) {
	switch {
	case name == "":
		return "", refuse("the path is empty: name a file in the workspace (data/in.csv)")
	case len(name) > maxPath:
		return "", refuse("path %s has %d bytes: the most is %d", quote(name), len(name), maxPath)
	case strings.IndexByte(name, 0) >= 0:
		return "", refuse("path %s holds a NUL character, which no file's name can", quote(name))
	case !utf8.ValidString(name):
		return "", refuse("path %s is not valid UTF-8", quote(name))
	}
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '/' })
	if name[0] == '/' {
		if len(parts) == 0 || parts[0] != Mount[1:] {
			return "", refuse("path %s is outside the workspace: name a file by its path from there (data/in.csv), or below %s", quote(name), Mount)
		}
		parts = parts[1:]
	}
	kept := parts[:0]
	for _, part := range parts {
		switch {
		case part == "..":
			return "", refuse(`path %s holds "..": name the file by its path from the workspace (data/in.csv)`, quote(name))
		case len(part) > maxName:
			return "", refuse("path %s holds a name of %d bytes: the most is %d", quote(name), len(part), maxName)
		case part != ".":
			kept = append(kept, part)
		}
	}
	switch {
	case len(kept) == 0:
		return ".", nil
	case len(kept) > maxDepth:
		return "", refuse("path %s is %d folders deep: the most is %d", quote(name), len(kept), maxDepth)
	}
	return strings.Join(kept, "/"), nil
}

// fileName is parse for a name that must be a file's.
func fileName(name string) (string, error) {
	local, err := parse(name)
	if err == nil && (local == "." || strings.HasSuffix(name, "/")) {
		err = refuse("path %s names a folder: name a file (data/in.csv)", quote(name))
	}
	return local, err
}

// pattern is a glob, component by component: path.Match's, and ** for any
// number of folders, none included.
type pattern []string

// parseGlob reads a client's glob; empty means all.
func parseGlob(glob string) (pattern, error) {
	if glob == "" {
		return pattern{"**"}, nil
	}
	if strings.ContainsAny(glob, "{}") {
		return nil, refuse("glob %s holds braces, which have no meaning here: use *, ?, [a-z] and **, one pattern a call", quote(glob))
	}
	local, err := parse(glob)
	if err != nil {
		return nil, err
	}
	if local == "." {
		return pattern{"**"}, nil
	}
	p := pattern(strings.Split(local, "/"))
	for _, part := range p {
		if _, err := path.Match(part, ""); err != nil {
			return nil, refuse("glob %s is not well-formed: a [ needs its ], and a \\ a character after it", quote(glob))
		}
	}
	return p, nil
}

// plain is the path that a pattern without any wildcard names.
func (p pattern) plain() (string, bool) {
	whole := strings.Join(p, "/")
	return whole, !strings.ContainsAny(whole, `*?[\`)
}

// matches says whether the pattern is that of a path.
func (p pattern) matches(name string) bool { return p.after(name)[len(p)] }

// mayHold says whether what is in a folder can match, so that the others need
// not be looked at.
func (p pattern) mayHold(folder string) bool { return slices.Contains(p.after(folder)[:len(p)], true) }

// after says of each number of components whether so many of the pattern's can
// stand for a path. It takes the product of the two lengths.
func (p pattern) after(name string) []bool {
	reached := make([]bool, len(p)+1)
	reached[0] = true
	for part := range strings.SplitSeq(name, "/") {
		next := make([]bool, len(p)+1)
		for i, glob := range p {
			switch {
			case !reached[i]:
			case glob == "**":
				next[i] = true
				reached[i+1] = true // it also stands for none
			case matchPart(glob, part):
				next[i+1] = true
			}
		}
		reached = next
	}
	for i, glob := range p {
		reached[i+1] = reached[i+1] || reached[i] && glob == "**"
	}
	return reached
}

func matchPart(pattern, part string) bool {
	ok, err := path.Match(pattern, part)
	return err == nil && ok
}
