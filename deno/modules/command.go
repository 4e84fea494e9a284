package modules

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// ParseCommand parses what names a package of npm's and perhaps its command:
// "cowsay", "npm:eslint@9/eslint".
func ParseCommand(text string) (Specifier, error) {
	s, err := ParseSpecifier(text)
	if err == nil && s.Scheme != "npm" {
		err = fmt.Errorf("%q is not a package of npm's, which alone have commands: import it in a program", text)
	}
	return s, err
}

// Command finds the module that a package's command runs, by its path below the plan's
// directory, and says whether that is CommonJS.
func (p Plan) Command(s Specifier) (file string, commonjs bool, err error) {
	fail := func(format string, args ...any) (string, bool, error) {
		return "", false, &PackageError{Text: fmt.Sprintf(format, args...)}
	}
	dir := p.dirOf(s.Name, p.Locked.Version(s))
	if dir == "" {
		return fail("%s is not among what was fetched for it", s.Root())
	}
	var manifest struct {
		Bin  json.RawMessage `json:"bin"`
		Type string          `json:"type"`
	}
	text, err := os.ReadFile(filepath.Join(p.Dir, filepath.FromSlash(dir), "package.json"))
	if err == nil {
		err = json.Unmarshal(text, &manifest)
	}
	if err != nil {
		return fail("the package.json of %s can't be read: %v", s.Name, err)
	}
	var one string
	var commands map[string]string
	own := path.Base(s.Name)
	if json.Unmarshal(manifest.Bin, &one) == nil {
		commands = map[string]string{own: one}
	} else if json.Unmarshal(manifest.Bin, &commands) != nil || len(commands) == 0 {
		return fail("%s has no commands: import it in a program", s.Name)
	}
	name := strings.TrimPrefix(s.Path, "/")
	if _, same := commands[own]; name == "" && same {
		name = own
	}
	names := slices.Sorted(maps.Keys(commands))
	if name == "" && allEqual(commands) {
		name = names[0]
	}
	bin, found := commands[name]
	if !found {
		for i, other := range names {
			names[i] = "npm:" + s.Name + "/" + other
		}
		return fail("%s has these commands: %s", s.Name, strings.Join(names, ", "))
	}
	file = path.Join(dir, bin)
	info, err := os.Stat(filepath.Join(p.Dir, filepath.FromSlash(file)))
	if !strings.HasPrefix(file, dir+"/") || err != nil || !info.Mode().IsRegular() {
		return fail("the command %s of %s is not in the package: %s", name, s.Name, bin)
	}
	return file, !strings.HasSuffix(file, ".mjs") && (strings.HasSuffix(file, ".cjs") || manifest.Type != "module"), nil
}

// allEqual says that all names are of one command.
func allEqual(commands map[string]string) bool {
	files := slices.Sorted(maps.Values(commands))
	return len(slices.Compact(files)) == 1
}

// dirOf is the directory of a package of npm's below the plan's; empty if it has none.
func (p Plan) dirOf(name, version string) string {
	for _, module := range p.Modules {
		plain, _, _ := strings.Cut(path.Base(module), "_") // what follows tells a copy for other peers apart
		if strings.HasPrefix(module, "npm/") && strings.HasSuffix(path.Dir(module), "/"+name) && plain == version {
			return module
		}
	}
	return ""
}
