package modules

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"rillbox/cache"
)

// Plans can be taken to another machine in an archive of the cache's. There they are used
// whatever registries it is configured for, where it has no plan of its own.

// importedKind is the cache's kind of what names an imported plan: its key is a plan's but
// for the registries, its content the key of the plan's directory.
const importedKind = "imported"

// importedLine begins the last line of the key of an imported plan's directory.
const importedLine = "imported "

// importedKey is the key of an imported plan for what a plan's key is for.
func importedKey(key string) (string, error) {
	lines := strings.Split(key, "\n")
	if strings.HasPrefix(lines[len(lines)-1], importedLine) { // it was imported there
		lines = lines[:len(lines)-1]
	}
	if len(lines) < 4 || !strings.HasPrefix(lines[0], "deno ") || !strings.HasPrefix(lines[1], "registries ") || !strings.HasPrefix(lines[2], "age ") {
		return "", errors.New("its key is not that of an install plan")
	}
	lines[1] = "registries imported"
	return strings.Join(lines, "\n"), nil
}

// PortableKey is the key that a plan has in an archive: without what tells the registries,
// which is made of passwords too. Those of other entries are their own.
func PortableKey(kind, key string) string {
	if other, err := importedKey(key); kind == planKind && err == nil {
		return other
	}
	return key
}

// imported gives the directory of the imported plan for a key, empty if there is none or
// one of this machine's own.
func (pl *Planner) imported(key string) string {
	other, err := importedKey(key)
	if err != nil || pl.Cache.HasTree(planKind, key) {
		return ""
	}
	named, err := pl.Cache.Get(importedKind, other)
	if err != nil {
		return ""
	}
	name, err := os.ReadFile(named)
	if err != nil {
		return ""
	}
	dir, err := pl.Cache.GetTree(planKind, string(name))
	if err != nil {
		return ""
	}
	return dir
}

// Admit judges an archive's entry: a plan is taken if what it holds is what its lock file
// says, as far as that can be told. note says why another one is left out. The error is
// cache.ErrNotPortable for what is no plan.
func (pl *Planner) Admit(a *cache.Archive, p cache.Portable) (store func(context.Context) error, note string, err error) {
	if p.Kind != planKind || !p.Tree {
		return nil, "", cache.ErrNotPortable
	}
	key, err := importedKey(p.Key)
	if err != nil {
		return nil, "", err
	}
	lines := strings.Split(key, "\n")
	if lines[0] != pl.form() {
		return nil, fmt.Sprintf("packages of %.60q are left out: this version of Rillbox has Deno %s", lines[0], pl.Version), nil
	}
	if age := fmt.Sprintf("age %v", pl.Policy.MinReleaseAge); lines[2] != age {
		return nil, fmt.Sprintf("packages of npm and JSR are left out: they were chosen with the minimum release %.60s, and min_release_age asks for %v here", lines[2], pl.Policy.MinReleaseAge), nil
	}
	if err := verifyImported(a, p); err != nil {
		return nil, "", err
	}
	tree := key + "\n" + importedLine + p.Digest()
	return func(ctx context.Context) error {
		_, _, err := pl.Cache.Tree(ctx, planKind, tree, func(_ context.Context, dir string) error {
			return errors.Join(a.Fill(p, dir), makeKinds(dir))
		})
		if err == nil {
			_, err = pl.Cache.Put(ctx, importedKind, key, strings.NewReader(tree))
		}
		return err
	}, "", nil
}

// maxImportedPlan is how large a plan's own file may be, in bytes.
const maxImportedPlan = 64 << 20

var (
	npmScope = regexp.MustCompile(`^(@[A-Za-z0-9_.~-]+)?$`)
	oneLine  = regexp.MustCompile(`^[!-~]*$`)
)

// verifyImported compares what a plan in an archive holds with its lock file: modules of
// URLs and of JSR have their hashes there. An npm package has that of its archive, which is
// not kept; that its files are those of it stands on the archive's own digest.
func verifyImported(a *cache.Archive, p cache.Portable) error {
	files := map[string]string{} // digests by path
	for _, f := range p.Files {
		files[f.Path] = f.SHA256
	}
	text, err := readImported(a, files[planFile])
	if err != nil {
		return err
	}
	var plan Plan
	if err := json.Unmarshal(text, &plan); err != nil {
		return fmt.Errorf("its plan can't be read: %w", err)
	}
	if plan.Locked, err = readLock(plan.Lock); err != nil {
		return err
	}
	for scope, address := range plan.Registries { // they become lines of a file
		u, err := url.Parse(address)
		if !npmScope.MatchString(scope) || !oneLine.MatchString(address) || err != nil || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("the registry %.200q of %.200q is malformed", address, scope)
		}
	}
	base, err := url.Parse(jsrURL())
	if err != nil {
		return fmt.Errorf("JSR_URL: %w", err)
	}
	for key := range plan.Locked.JSR {
		name, version := splitKey(key)
		if _, has := files[cachedURL(base.JoinPath(name, version+"_meta.json"))]; !has {
			return fmt.Errorf("jsr:%.200s is not from %s: set JSR_URL to the registry that it had where it was exported", key, base.Redacted())
		}
	}
	signed, err := plan.signed(a, base, files)
	if err != nil {
		return err
	}
	manifests, packages := plan.Manifests(), plan.packageDirs()
	for file, digest := range files {
		want, known := signed[file]
		_, isManifest := manifests[file]
		switch {
		case known && want != "":
			content, err := readImported(a, digest)
			if err != nil {
				return err
			}
			if sum := sha256.Sum256(withoutHeaders(content)); hex.EncodeToString(sum[:]) != want {
				return fmt.Errorf("%s has not the sha256 that its lock file says, %.64s", file, want)
			}
		case known, isManifest, file == planFile, isBelow(file, packages):
		default:
			return fmt.Errorf("its lock file does not name %.200q", file)
		}
	}
	for _, module := range plan.Modules {
		if !filepath.IsLocal(filepath.FromSlash(module)) {
			return fmt.Errorf("%.200q is not the path of a module", module)
		}
	}
	return nil
}

// packageDirs are the directories of the packages of npm's that are in the lock file.
func (p Plan) packageDirs() map[string]bool {
	locked := map[string]bool{} // name/version
	for key, pkg := range p.Locked.NPM {
		if name, version := splitKey(key); pkg.Integrity != "" {
			locked[name+"/"+version] = true
		}
	}
	dirs := map[string]bool{}
	for _, module := range p.Modules { // npm/{registry, perhaps with a path}/{name}/{version}
		parts := strings.Split(module, "/")
		if len(parts) < 4 || parts[0] != "npm" {
			continue
		}
		version, _, _ := strings.Cut(parts[len(parts)-1], "_") // what follows tells a copy for other peers apart
		name := parts[len(parts)-2]
		if scope := parts[len(parts)-3]; strings.HasPrefix(scope, "@") {
			name = scope + "/" + name
		}
		dirs[module] = locked[name+"/"+version]
	}
	return dirs
}

// isBelow says that a file is in one of some directories.
func isBelow(file string, dirs map[string]bool) bool {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if dirs[dir] {
			return true
		}
	}
	return false
}

// signed are the paths of the modules of URLs and of JSR with the sha256 that the lock
// file has of each; it is empty for redirects, which have no content.
func (p Plan) signed(a *cache.Archive, base *url.URL, files map[string]string) (map[string]string, error) {
	signed := map[string]string{}
	for from := range p.Locked.Redirects {
		if u, err := url.Parse(from); err == nil && u.Host != "" {
			signed[cachedURL(u)] = ""
		}
	}
	for address, sum := range p.Locked.Remote {
		u, err := url.Parse(address)
		if err != nil || sum == "" {
			return nil, fmt.Errorf("its lock file names %.200q", address)
		}
		signed[cachedURL(u)] = sum
	}
	for key, locked := range p.Locked.JSR {
		name, version := splitKey(key)
		about := cachedURL(base.JoinPath(name, version+"_meta.json"))
		signed[about] = locked.Integrity
		text, err := readImported(a, files[about])
		if err != nil {
			return nil, err
		}
		var meta struct {
			Manifest map[string]struct {
				Checksum string `json:"checksum"`
			} `json:"manifest"`
		}
		if err := json.Unmarshal(withoutHeaders(text), &meta); err != nil || locked.Integrity == "" {
			return nil, fmt.Errorf("what JSR says of %.200s can't be read", key)
		}
		for file, its := range meta.Manifest {
			if sum, ok := strings.CutPrefix(its.Checksum, "sha256-"); ok && sum != "" {
				signed[cachedURL(base.JoinPath(name, version, file))] = sum
			}
		}
	}
	return signed, nil
}

// readImported reads a file of an archive, by its digest.
func readImported(a *cache.Archive, digest string) ([]byte, error) {
	at := a.Path(digest)
	st, err := os.Stat(at)
	if at == "" || err != nil {
		return nil, errors.Join(errors.New("it has no plan, or not what the plan names"), err)
	}
	if st.Size() > maxImportedPlan {
		return nil, fmt.Errorf("a file in it has more than %d MiB", maxImportedPlan>>20)
	}
	return os.ReadFile(at)
}

// withoutHeaders is the content of a file of Deno's, which has what the server said of it
// after its end.
func withoutHeaders(text []byte) []byte {
	if at := bytes.LastIndex(text, []byte("\n// denoCacheMetadata=")); at >= 0 {
		return text[:at]
	}
	return text
}
