package manifest

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
)

// inlineMetadata begins a program's own metadata (PEP 723).
var inlineMetadata = regexp.MustCompile(`(?m)^# /// script[ \t]*\r?$`)

// python reads what decides for Python: pyproject.toml, requirements.txt beside the
// program, and a lock file. What the program says itself stands in place of the first two,
// as uv has it.
func (r *reader) python(program, code string) error {
	if inlineMetadata.MatchString(code) {
		return r.scriptLock(program)
	}
	if err := r.pyproject(); err != nil {
		return err
	}
	if err := r.requirements(path.Join(r.base, "requirements.txt")); err != nil {
		return err
	}
	return r.pythonLock()
}

// toml reads a TOML file; there is false where there is none.
func (r *reader) toml(name string, limit int64, into any) (there bool, err error) {
	text, err := r.file(name, limit)
	if err != nil || text == nil {
		return false, err
	}
	if !utf8.Valid(text) {
		return false, fmt.Errorf("%s is not UTF-8 text", r.called(name))
	}
	if err := toml.Unmarshal(text, into); err != nil {
		why := strings.TrimPrefix(err.Error(), "toml: ")
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, _ := at.Position()
			why = fmt.Sprintf("line %d", line)
			if key := strings.Join(at.Key(), "."); key != "" {
				why += fmt.Sprintf(", %s", key)
			}
			if text := at.Error(); !strings.Contains(text, "struct") && !strings.Contains(text, "manifest.") {
				why += ": " + strings.TrimPrefix(text, "toml: ")
			} else {
				why += ": another kind of value stands there"
			}
		}
		return false, fmt.Errorf("%s can't be read: %s", r.called(name), why)
	}
	return true, nil
}

// pyproject is what is read of pyproject.toml.
type pyproject struct {
	Project struct {
		Name         string              `toml:"name"`
		Requires     string              `toml:"requires-python"`
		Dependencies []string            `toml:"dependencies"`
		Optional     map[string][]string `toml:"optional-dependencies"`
		Dynamic      []string            `toml:"dynamic"`
	} `toml:"project"`
	Groups map[string][]any `toml:"dependency-groups"`
	Tool   struct {
		UV struct {
			Sources     map[string]any `toml:"sources"`
			Development []string       `toml:"dev-dependencies"`
			Constraints []string       `toml:"constraint-dependencies"`
			Overrides   []any          `toml:"override-dependencies"`
			Index       any            `toml:"index"`
			IndexURL    any            `toml:"index-url"`
			Extra       any            `toml:"extra-index-url"`
		} `toml:"uv"`
		Poetry struct {
			Dependencies map[string]any `toml:"dependencies"`
		} `toml:"poetry"`
	} `toml:"tool"`
}

// pyproject reads the nearest pyproject.toml.
func (r *reader) pyproject() error {
	for _, folder := range r.folders() {
		name := path.Join(folder, "pyproject.toml")
		var p pyproject
		there, err := r.toml(name, maxFile, &p)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		file := r.called(name)
		uv := p.Tool.UV
		for _, field := range []struct {
			name  string
			isSet bool
		}{
			{`"tool.poetry.dependencies"`, len(p.Tool.Poetry.Dependencies) > 0 && len(p.Project.Dependencies) == 0},
			{`"tool.uv.override-dependencies"`, len(uv.Overrides) > 0},
			{`"tool.uv.index"`, uv.Index != nil || uv.IndexURL != nil || uv.Extra != nil},
			{`"dependencies", which is dynamic,`, slices.Contains(p.Project.Dynamic, "dependencies")},
		} {
			if field.isSet {
				r.note("%s: %s is not honoured", file, field.name)
			}
		}
		r.m.Requires = p.Project.Requires
		if name := normalised(p.Project.Name); name != "" {
			r.refuse(name, "%s is of the project %s itself, which is not installed here: its modules are found beside the program", file, name)
		}
		for _, name := range slices.Sorted(maps.Keys(uv.Sources)) {
			r.refuse(normalised(name), "%s has it come from a place of its own (tool.uv.sources), and not from the package index", file)
		}
		lists := [][]string{p.Project.Dependencies, uv.Constraints, uv.Development}
		for _, name := range slices.Sorted(maps.Keys(p.Project.Optional)) {
			lists = append(lists, p.Project.Optional[name])
		}
		for _, name := range slices.Sorted(maps.Keys(p.Groups)) {
			var group []string
			for _, one := range p.Groups[name] {
				if text, is := one.(string); is { // others include groups, all of which are read
					group = append(group, text)
				}
			}
			lists = append(lists, group)
		}
		for i, list := range lists {
			if err := r.counted(len(list)); err != nil {
				return err
			}
			for _, text := range list {
				r.require(text, file, i > 1)
			}
		}
		return nil
	}
	return nil
}

var (
	notInName = regexp.MustCompile(`[-_.]+`)
	// aRequirement is one of PEP 508: a name, extras, and the rest.
	aRequirement = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]{0,200}[A-Za-z0-9])?)[ \t]*(\[[A-Za-z0-9._, \t-]{0,500}\])?[ \t]*([(@;<>=!~].*)?$`)
)

// normalised is a project's name as indexes have it.
func normalised(name string) string {
	return strings.ToLower(notInName.ReplaceAllString(name, "-"))
}

// require takes a requirement; an optional one only if there is none of that name.
func (r *reader) require(text, file string, optional bool) {
	text = strings.TrimSpace(text)
	m := aRequirement.FindStringSubmatch(text)
	if m == nil || len(text) > 2000 || strings.ContainsAny(text, "\x00\r\n") {
		r.note("%s: %.200q is not honoured: it is no requirement of a package (PEP 508)", file, text)
		return
	}
	name := normalised(m[1])
	if rest, is := strings.CutPrefix(m[3], "@"); is {
		if rest = strings.TrimSpace(rest); !strings.HasPrefix(rest, "https://") || !strings.Contains(rest, ".whl") {
			r.refuse(name, "%s has it come from %.200q, which is no wheel at an https: URL", file, rest)
			return
		}
	}
	if r.required == nil {
		r.required = map[string]bool{}
	}
	if optional && r.required[name] || slices.Contains(r.m.Requirements, text) {
		return
	}
	r.required[name] = true
	r.m.Requirements = append(r.m.Requirements, text)
}

var hashOption = regexp.MustCompile(`[ \t]+--hash[= \t][ \t]*(?:sha256:([0-9a-f]{64})|\S+)`)

// requirements reads the requirements.txt beside the program. Those that have hashes are a
// lock.
func (r *reader) requirements(name string) error {
	text, err := r.file(name, maxFile)
	if err != nil || text == nil {
		return err
	}
	file := r.called(name)
	if !utf8.Valid(text) {
		return fmt.Errorf("%s is not UTF-8 text", file)
	}
	lines := strings.NewReplacer("\r\n", "\n", "\\\r\n", " ", "\\\n", " ").Replace(strings.TrimPrefix(string(text), "\uFEFF"))
	for line := range strings.SplitSeq(lines, "\n") {
		line, _, _ = strings.Cut(" "+line, " #")
		hashes := hashOption.FindAllStringSubmatch(line, -1)
		line = strings.TrimSpace(hashOption.ReplaceAllString(line, ""))
		if err := r.counted(1); err != nil {
			return err
		}
		switch {
		case line == "":
			continue
		case strings.HasPrefix(line, "-"):
			r.note("%s: %.200q is not honoured: options of pip's have settings here (rillbox config --help)", file, line)
			continue
		}
		r.require(line, file, false)
		m := aRequirement.FindStringSubmatch(line)
		if len(hashes) == 0 || m == nil {
			continue
		}
		locked := lockedBy(m[1], strings.TrimSpace(strings.TrimPrefix(strings.Split(m[3], ";")[0], "==")))
		for _, hash := range hashes {
			if hash[1] == "" { // another algorithm
				continue
			}
			locked.Files = append(locked.Files, lockedFile("", "", 0, hash[1]))
		}
		r.m.Lock.File, r.m.Lock.Foreign = file, true
		r.m.Lock.Python = append(r.m.Lock.Python, locked)
	}
	r.checkLock()
	return nil
}
