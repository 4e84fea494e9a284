//go:build !windows

package pyodide

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"rillbox/cache/egress"
	"rillbox/pyodide/gateway"
	"rillbox/supervisor/job"
)

// demanded are the packages of a program's lock file whose files can be had here. Of those
// that are native code for other systems, Pyodide's own distribution may have another
// version. Those that the request names are what it says, unless the lock is frozen or the
// request's own.
func demanded(program job.Program, distributed map[string]string) (list []gateway.Locked) {
	m := program.Manifest
	named := map[string]bool{}
	for _, text := range program.Packages {
		named[egress.NormalizePython(aProject.FindString(strings.TrimSpace(text)))] = !m.Frozen && !m.Lock.Asked
	}
	for _, p := range m.Lock.Python {
		if named[p.Name] {
			continue
		}
		locked := gateway.Locked{Name: p.Name, Version: p.Version, Files: map[string]string{}}
		wheels, fits := false, distributed[p.Name] == "" || distributed[p.Name] == p.Version
		for _, f := range p.Files {
			locked.Files[f.SHA256] = f.Name
			fits = fits || strings.HasSuffix(f.Name, "-none-any.whl") || strings.Contains(f.Name, "emscripten")
			wheels = wheels || strings.HasSuffix(f.Name, ".whl")
		}
		if fits || !wheels { // a source alone was built when the lock file was written
			list = append(list, locked)
		}
	}
	return list
}

var aProject = regexp.MustCompile(`^[A-Za-z0-9._-]+`)

// constraints are the versions (PEP 508) that a program's project has its packages be.
func constraints(program job.Program, distributed map[string]string) []string {
	list := slices.Clone(program.Manifest.Requirements)
	versions := map[string][]string{}
	for _, p := range demanded(program, distributed) {
		versions[p.Name] = append(versions[p.Name], p.Version)
	}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		if len(versions[name]) == 1 { // else one of them is for here, as the index's files tell
			list = append(list, name+"=="+versions[name][0])
		}
	}
	return list
}

// termsOf describes all of a manifest that decides what requirements resolve to.
func termsOf(m job.Manifest) string {
	if len(m.Requirements) == 0 && len(m.Refused) == 0 && m.Lock.File == "" {
		return ""
	}
	text, _ := json.Marshal([]any{m.Requirements, m.Refused, m.Lock, m.Frozen}) // texts can be written
	return string(text)
}

// addManifest adds to a result what is to be told of the project's demands, and the lock
// file that the program asked for.
func (r *run) addManifest(result *job.Result) {
	m := r.program.Manifest
	if !runsOn(m.Requires, PythonVersion) {
		result.Notes = append(result.Notes, fmt.Sprintf("the project requires Python %.100s, which is not honoured: here is Python %s only", m.Requires, PythonVersion))
	}
	var lacking []string
	for _, f := range r.files() {
		f = f.Origin()
		versions, is := []string{}, m.Lock.File == ""
		for _, p := range m.Lock.Python {
			if p.Name == f.Name {
				versions = append(versions, p.Version)
				is = is || slices.ContainsFunc(p.Files, func(l job.LockedFile) bool { return l.SHA256 == f.SHA256 })
			}
		}
		switch {
		case is:
		case len(versions) > 0:
			result.Notes = append(result.Notes, fmt.Sprintf("%s %s is what runs here, and %s has %s", f.Name, f.Version, m.Lock.File, strings.Join(versions, ", ")))
		default:
			lacking = append(lacking, f.Name+" "+f.Version)
		}
	}
	switch {
	case len(lacking) == 0 || r.program.FetchOnly:
	case m.Lock.Asked:
		result.Notes = append(result.Notes, fmt.Sprintf("%s has no digest of %s", m.Lock.File, strings.Join(lacking, ", ")))
	default:
		result.Notes = append(result.Notes, fmt.Sprintf("%s does not have %s: `rillbox lock FILE` adds it", m.Lock.File, strings.Join(lacking, ", ")))
	}
	if r.program.FetchOnly && result.Status == job.Completed {
		result.Lock = lockFile(m.Lock, r.files())
	}
}

// runsOn says whether a version of Python is among these (PEP 440), as far as comparing
// numbers tells; what is no comparison is left to others.
func runsOn(specifier, version string) bool {
	for part := range strings.SplitSeq(specifier, ",") {
		part = strings.TrimSpace(part)
		at := strings.IndexAny(part, "0123456789")
		if at <= 0 {
			continue
		}
		operator, wanted := strings.TrimSpace(part[:at]), strings.TrimSpace(part[at:])
		prefix, starred := strings.CutSuffix(wanted, ".*")
		asked, have := numbers(prefix), numbers(version)
		order := slices.Compare(trimmed(have), trimmed(asked))
		same := order == 0
		if starred {
			same = slices.Equal(have[:min(len(have), len(asked))], asked)
		}
		fits := true
		switch operator {
		case ">=":
			fits = order >= 0
		case ">":
			fits = order > 0
		case "<":
			fits = order < 0
		case "<=":
			fits = order <= 0
		case "==":
			fits = same
		case "!=":
			fits = !same
		case "~=":
			base := asked[:max(len(asked)-1, 0)]
			fits = order >= 0 && slices.Equal(have[:min(len(have), len(base))], base)
		}
		if !fits {
			return false
		}
	}
	return true
}

// numbers are those of a version's release.
func numbers(version string) (list []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		list = append(list, n)
	}
	return list
}

// trimmed is a version without zeros at its end.
func trimmed(version []int) []int {
	for len(version) > 0 && version[len(version)-1] == 0 {
		version = version[:len(version)-1]
	}
	return version
}

// lockedFile is a file in pylock.toml (PEP 751).
type lockedFile struct {
	Name   string            `toml:"name,omitempty"`
	URL    string            `toml:"url,omitempty"`
	Size   int64             `toml:"size,omitempty"`
	Hashes map[string]string `toml:"hashes,inline"`
}

type lockedPackage struct {
	Name    string       `toml:"name"`
	Version string       `toml:"version"`
	Archive *lockedFile  `toml:"archive,omitempty"`
	Sdist   *lockedFile  `toml:"sdist,omitempty"`
	Wheels  []lockedFile `toml:"wheels,omitempty"`
}

// lockFile is a lock file with these files, and with the packages that one of ours had
// before beside them.
func lockFile(before job.Lock, files []gateway.File) []byte {
	packages := map[string]job.LockedPackage{}
	if !before.Foreign {
		for _, p := range before.Python {
			packages[p.Name] = p
		}
	}
	for _, f := range files {
		f = f.Origin()
		packages[f.Name] = job.LockedPackage{Name: f.Name, Version: f.Version, Files: []job.LockedFile{{Name: f.Filename, URL: f.URL, Size: f.Size, SHA256: f.SHA256}}}
	}
	lock := struct {
		Version   string          `toml:"lock-version"`
		CreatedBy string          `toml:"created-by"`
		Packages  []lockedPackage `toml:"packages"`
	}{"1.0", "rillbox", []lockedPackage{}}
	for _, p := range slices.SortedFunc(maps.Values(packages), func(a, b job.LockedPackage) int { return cmp.Compare(a.Name, b.Name) }) {
		written := lockedPackage{Name: p.Name, Version: p.Version}
		for _, f := range p.Files {
			file := lockedFile{f.Name, f.URL, f.Size, map[string]string{"sha256": f.SHA256}}
			switch {
			case strings.HasSuffix(f.Name, ".whl"):
				written.Wheels = append(written.Wheels, file)
			case strings.HasSuffix(f.Name, ".tar.gz"):
				written.Sdist = &file
			default: // a library of Pyodide's
				file.Name = ""
				written.Archive = &file
			}
		}
		lock.Packages = append(lock.Packages, written)
	}
	text, _ := toml.Marshal(lock) // texts and lists of such can be written
	return text
}
