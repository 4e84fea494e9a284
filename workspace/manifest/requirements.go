package manifest

import (
	"encoding/binary"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"rillbox/supervisor/job"
)

// Requirement is what a requirements file of pip's says of a package.
type Requirement struct {
	Text string // PEP 508, or what stands in its place
	File string // that it is in
	// Constraint says that the package is not asked for: if it is needed, this holds.
	Constraint bool
	// Locked has the version and the digests, if it has any.
	Locked *job.LockedPackage
}

// ReadRequirements reads a requirements file with this text and those that it names with -r
// and -c, which are in read. name is its path there, and called is what its user calls it.
// notes are options that don't hold here; an error is what can't be had.
func ReadRequirements(read Source, name, called string, text []byte) (list []Requirement, notes []string, err error) {
	r := &reader{read: read, base: path.Dir(name), from: filepath.Dir(called), m: &job.Manifest{}}
	f := requirements{reader: r, strict: true, seen: map[string]bool{}}
	f.take = func(q Requirement) { list = append(list, q) }
	err = f.readText(name, text, false)
	return list, r.notes, err
}

// ProjectOf is the normalised name of the project that a requirement asks for; empty where
// it can't be told.
func ProjectOf(text string) string {
	m := partsOf(text)
	if m == nil {
		return ""
	}
	return normalised(m[1])
}

// requirements reads the requirements.txt beside the program. Those that have hashes are a
// lock.
func (r *reader) requirements(name string) error {
	f := requirements{reader: r, seen: map[string]bool{}}
	f.take = func(q Requirement) {
		r.require(q.Text, q.File, false)
		if q.Locked != nil {
			r.m.Lock.File, r.m.Lock.Foreign = r.called(name), true
			r.m.Lock.Python = append(r.m.Lock.Python, *q.Locked)
		}
	}
	if text, err := r.file(name, maxFile); err != nil || text == nil {
		return err
	} else if err := f.readText(name, text, false); err != nil {
		return err
	}
	r.checkLock()
	return nil
}

// requirements reads requirements files, line by line as pip does.
type requirements struct {
	*reader
	// strict says that somebody asked for the file: what can't be had is an error.
	strict bool
	seen   map[string]bool // files, and whether for constraints
	take   func(Requirement)
}

// Parts of a line, as pip's req_file.py has them.
var (
	comment    = regexp.MustCompile(`(^|\s+)#.*$`)
	hashOption = regexp.MustCompile(`\s+--hash[=\s]\s*(?:sha256:([0-9a-fA-F]{64})\b|\S+)`)
	anOption   = regexp.MustCompile(`^(-[a-zA-Z]|--[a-z-]+)[=\s]*(.*)$`)
	ofPackage  = regexp.MustCompile(`\s+--(?:global-option|config-settings?|install-option)\b.*$`)
)

// ownOptions are options that decide how pip finds wheels, and nothing that is asked for.
var ownOptions = map[string]bool{
	"--pre": true, "--prefer-binary": true, "--only-binary": true, "--no-binary": true,
	"--require-hashes": true, "--trusted-host": true, "--use-feature": true,
}

func (f *requirements) readText(name string, text []byte, constraint bool) error {
	key := fmt.Sprint(constraint, " ", name)
	if f.seen[key] {
		return nil
	}
	f.seen[key] = true
	file := f.called(name)
	decoded, ok := decode(text)
	if !ok {
		return fmt.Errorf("%s is not UTF-8 text", file)
	}
	var whole strings.Builder
	begin, goesOn := 0, false
	lines := strings.Split(strings.ReplaceAll(decoded, "\r\n", "\n"), "\n")
	for i, line := range lines {
		if !goesOn {
			whole.Reset()
			begin = i + 1
		}
		isComment := strings.HasPrefix(strings.TrimLeft(line, " \t"), "#")
		if isComment { // ends what was to go on
			line = ""
		}
		line, goesOn = strings.CutSuffix(line, `\`)
		whole.WriteString(line)
		if goesOn = goesOn && i+1 < len(lines); goesOn {
			continue
		}
		if err := f.readLine(name, strings.TrimSpace(comment.ReplaceAllString(whole.String(), "")), begin, constraint); err != nil {
			return err
		}
	}
	return nil
}

func (f *requirements) readLine(name, line string, number int, constraint bool) error {
	if err := f.counted(1); err != nil || line == "" {
		return err
	}
	place := fmt.Sprintf("%s, line %d", f.called(name), number)
	if m := anOption.FindStringSubmatch(line); m != nil {
		switch option, value := m[1], strings.Trim(m[2], `"'`); {
		case option == "-r" || option == "--requirement":
			return f.nested(name, value, place, constraint)
		case option == "-c" || option == "--constraint":
			return f.nested(name, value, place, true)
		case f.strict && !ownOptions[option]:
			return fmt.Errorf("%s: %.200q can't be had here: options of pip's have settings (rillbox config --help)", place, line)
		}
		f.note("%s: %.200q is not honoured: options of pip's have settings here (rillbox config --help)", place, line)
		return nil
	}
	q := Requirement{File: f.called(name), Constraint: constraint}
	hashes := hashOption.FindAllStringSubmatch(line, -1)
	q.Text = hashOption.ReplaceAllString(line, "")
	if options := ofPackage.FindString(q.Text); options != "" {
		f.note("%s: %.200q is not honoured", place, strings.TrimSpace(options))
		q.Text = strings.TrimSuffix(q.Text, options)
	}
	q.Text = strings.TrimSpace(q.Text)
	m := partsOf(q.Text)
	if m == nil && f.strict && !strings.Contains(q.Text, ":") { // it may be another language's, or a URL
		return fmt.Errorf("%s: %.200q is no requirement of a package (PEP 508), such as requests>=2", place, q.Text)
	}
	if len(hashes) > 0 {
		locked, why := lockedAs(m, hashes)
		switch {
		case why == "":
			q.Locked = &locked
		case f.strict:
			return fmt.Errorf("%s: --hash can't be honoured: %s", place, why)
		default:
			f.note("%s: --hash is not honoured: %s", place, why)
		}
	}
	f.take(q)
	return nil
}

// lockedAs is the package that a requirement with digests has; why not, if it can't be one.
func lockedAs(parts []string, hashes [][]string) (locked job.LockedPackage, why string) {
	if parts == nil {
		return locked, "it is no requirement of a package (PEP 508)"
	}
	version, isPinned := strings.CutPrefix(strings.TrimSpace(parts[3]), "==")
	if version = strings.TrimSpace(version); !isPinned || !pythonVersion.MatchString(version) {
		return locked, "the version is not pinned with =="
	}
	locked = lockedBy(parts[1], version)
	for _, hash := range hashes {
		if hash[1] != "" { // else another algorithm
			locked.Files = append(locked.Files, lockedFile("", "", 0, hash[1]))
		}
	}
	if len(locked.Files) == 0 {
		return locked, "none of its digests is a sha256"
	}
	return locked, ""
}

// nested reads a file that another names.
func (f *requirements) nested(name, value, place string, constraint bool) error {
	why := "it is no file of the project"
	if to := path.Join(path.Dir(name), value); !strings.Contains(value, "://") && !path.IsAbs(value) && to != ".." && !strings.HasPrefix(to, "../") {
		text, err := f.file(to, maxFile)
		if err != nil {
			return err
		}
		if text != nil {
			return f.readText(to, text, constraint)
		}
		why = "there is no such file"
	}
	if f.strict {
		return fmt.Errorf("%s: %.200q can't be read: %s", place, value, why)
	}
	f.note("%s: the file %.200q is not honoured: %s", place, value, why)
	return nil
}

// decode is a file's text: UTF-8, or UTF-16 as PowerShell writes it.
func decode(text []byte) (string, bool) {
	for mark, order := range map[string]binary.ByteOrder{"\xff\xfe": binary.LittleEndian, "\xfe\xff": binary.BigEndian} {
		if len(text)%2 == 0 && strings.HasPrefix(string(text), mark) {
			units := make([]uint16, len(text)/2-1)
			for i := range units {
				units[i] = order.Uint16(text[2*i+2:])
			}
			return string(utf16.Decode(units)), true
		}
	}
	return strings.TrimPrefix(string(text), "\uFEFF"), utf8.Valid(text)
}
