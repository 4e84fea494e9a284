package manifest

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"rillbox/supervisor/job"
)

// pythonLock reads the nearest lock file for Python; of those in one folder, pylock.toml
// comes first.
func (r *reader) pythonLock() error {
	for _, folder := range r.folders() {
		if there, err := r.pylock(path.Join(folder, "pylock.toml")); there || err != nil {
			return err
		}
		if there, err := r.uvLock(path.Join(folder, "uv.lock")); there || err != nil {
			return err
		}
		for _, other := range []string{"poetry.lock", "pdm.lock", "Pipfile.lock"} {
			if _, err := r.read.ReadFile(path.Join(folder, other), 1); err == nil {
				r.note("%s is not honoured: pylock.toml and uv.lock are", r.called(path.Join(folder, other)))
			}
		}
	}
	return nil
}

// scriptLock reads the lock file of a program that says itself what it needs: uv's own for
// it, or the one beside it.
func (r *reader) scriptLock(program string) error {
	if there, err := r.uvLock(program + ".lock"); there || err != nil {
		return err
	}
	_, err := r.pylock(path.Join(r.base, "pylock.toml"))
	return err
}

// lockedSource is a file in pylock.toml.
type lockedSource struct {
	Name   string            `toml:"name"`
	URL    string            `toml:"url"`
	Path   string            `toml:"path"`
	Size   int64             `toml:"size"`
	Hashes map[string]string `toml:"hashes"`
}

// pylock reads a lock file as PEP 751 has it.
func (r *reader) pylock(name string) (there bool, err error) {
	var lock struct {
		Version   string `toml:"lock-version"`
		CreatedBy string `toml:"created-by"`
		Packages  []struct {
			Name      string         `toml:"name"`
			Version   string         `toml:"version"`
			VCS       map[string]any `toml:"vcs"`
			Directory map[string]any `toml:"directory"`
			Archive   *lockedSource  `toml:"archive"`
			Sdist     *lockedSource  `toml:"sdist"`
			Wheels    []lockedSource `toml:"wheels"`
		} `toml:"packages"`
	}
	if there, err = r.toml(name, maxLock, &lock); !there || err != nil {
		return there, err
	}
	file := r.called(name)
	if !strings.HasPrefix(lock.Version, "1.") {
		r.note("%s is not honoured: its lock-version is %.20q, and 1.0 is read", file, lock.Version)
		return true, nil
	}
	r.m.Lock = job.Lock{File: file, Foreign: lock.CreatedBy != "rillbox"}
	for _, p := range lock.Packages {
		if p.VCS != nil || p.Directory != nil {
			r.refuse(normalised(p.Name), "%s has it come from a place of its own, and not from the package index", file)
			continue
		}
		locked := lockedBy(p.Name, p.Version)
		for _, source := range append(p.Wheels, valueOf(p.Sdist), valueOf(p.Archive)) {
			filename := source.Name
			if filename == "" {
				filename = source.Path
			}
			if hash := source.Hashes["sha256"]; hash != "" {
				locked.Files = append(locked.Files, lockedFile(filename, source.URL, source.Size, hash))
			}
		}
		r.m.Lock.Python = append(r.m.Lock.Python, locked)
	}
	r.checkLock()
	return true, nil
}

func valueOf(s *lockedSource) lockedSource {
	if s == nil {
		return lockedSource{}
	}
	return *s
}

// uvFile is a file in uv.lock.
type uvFile struct {
	URL  string `toml:"url"`
	Hash string `toml:"hash"`
	Size int64  `toml:"size"`
}

// uvLock reads uv's lock file.
func (r *reader) uvLock(name string) (there bool, err error) {
	var lock struct {
		Version  int `toml:"version"`
		Packages []struct {
			Name    string         `toml:"name"`
			Version string         `toml:"version"`
			Source  map[string]any `toml:"source"`
			Sdist   uvFile         `toml:"sdist"`
			Wheels  []uvFile       `toml:"wheels"`
		} `toml:"package"`
	}
	if there, err = r.toml(name, maxLock, &lock); !there || err != nil {
		return there, err
	}
	file := r.called(name)
	if lock.Version != 1 {
		r.note("%s is not honoured: it has the form of version %d, and 1 is read", file, lock.Version)
		return true, nil
	}
	r.m.Lock = job.Lock{File: file, Foreign: true}
	for _, p := range lock.Packages {
		if _, registry := p.Source["registry"]; !registry {
			r.refuse(normalised(p.Name), "%s has it come from a place of its own, and not from the package index", file)
			continue
		}
		locked := lockedBy(p.Name, p.Version)
		for _, f := range append(p.Wheels, p.Sdist) {
			if hash, is := strings.CutPrefix(f.Hash, "sha256:"); is {
				locked.Files = append(locked.Files, lockedFile("", f.URL, f.Size, hash))
			}
		}
		r.m.Lock.Python = append(r.m.Lock.Python, locked)
	}
	r.checkLock()
	return true, nil
}

var (
	pythonVersion = regexp.MustCompile(`^[0-9A-Za-z.!+_-]{1,100}$`)
	sha256Digest  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	projectName   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,200}[a-z0-9])?$`)
)

// lockedBy is a package of a lock file, without its files yet.
func lockedBy(name, version string) job.LockedPackage {
	return job.LockedPackage{Name: normalised(name), Version: version}
}

// lockedFile is a file of a package; its name is the address's end where it has none.
func lockedFile(name, address string, size int64, hash string) job.LockedFile {
	f := job.LockedFile{Name: path.Base(name), Size: size, SHA256: strings.ToLower(hash)}
	u, err := url.Parse(address)
	if err == nil && u.User == nil && (u.Scheme == "https" || u.Scheme == "http") && len(address) < 2000 {
		f.URL = address
		if name == "" {
			f.Name = path.Base(u.Path)
		}
	}
	if f.Name == "." || f.Name == "/" {
		f.Name = ""
	}
	return f
}

// maxLocked is how many packages of a lock file are read.
const maxLocked = 20_000

// checkLock leaves out what no index can have.
func (r *reader) checkLock() {
	if n := len(r.m.Lock.Python); n > maxLocked {
		r.note("%s: of its %d packages, the first %d are honoured", r.m.Lock.File, n, maxLocked)
		r.m.Lock.Python = r.m.Lock.Python[:maxLocked]
	}
	r.m.Lock.Python = slices.DeleteFunc(r.m.Lock.Python, func(p job.LockedPackage) bool {
		wrong := !projectName.MatchString(p.Name) || !pythonVersion.MatchString(p.Version)
		for _, f := range p.Files {
			wrong = wrong || !sha256Digest.MatchString(f.SHA256) || len(f.Name) > 300 || strings.ContainsAny(f.Name, "\x00\r\n\\/")
		}
		if wrong {
			r.note("%s: the package %.200q is not honoured: its name, its version or a digest can't be one", r.m.Lock.File, p.Name)
		}
		return wrong || len(p.Files) == 0
	})
}
