package modules

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"rillbox/deno/permission"
)

// Manifests are the paths, in Deno's directory, of what registries say of the plan's
// packages. Those that list versions have the planned ones; JSR's of a single version
// have nil. Deno reads manifests beside the modules.
func (p Plan) Manifests() map[string]map[string]bool {
	manifests := map[string]map[string]bool{}
	add := func(manifest, version string) {
		if manifests[manifest] == nil {
			manifests[manifest] = map[string]bool{}
		}
		manifests[manifest][version] = true
	}
	for _, module := range p.Modules {
		if strings.HasPrefix(module, "npm/") {
			version, _, _ := strings.Cut(path.Base(module), "_") // what follows tells a copy for other peers apart
			add(path.Join(path.Dir(module), "registry.json"), version)
		}
	}
	base, err := url.Parse(jsrURL())
	if err != nil {
		return manifests
	}
	for key := range p.Locked.JSR {
		name, version := splitKey(key)
		add(cachedURL(base.JoinPath(name, "meta.json")), version)
		manifests[cachedURL(base.JoinPath(name, version+"_meta.json"))] = nil
	}
	return manifests
}

// Databases are those in which Deno keeps what it found out about modules. Making one
// anew for each run takes 3 ms of CPU; where a directory has its name, Deno keeps its
// content in memory.
var Databases = []string{"dep_analysis_cache_v2", "node_analysis_cache_v2"}

// MakeDenoDir makes a directory for DENO_DIR in which Deno keeps in memory what
// it finds out about modules, save where it has databases of that already.
func MakeDenoDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range Databases {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// ShowModules lets a child find a plan's modules, npm's and those of URLs, in its
// DENO_DIR, which it calls name. Deno takes as modules only what is below its own
// directory when links are followed. readable are the child's names for the directory of
// npm's packages, whose code reads files of its own: data, templates, WebAssembly.
func ShowModules(around *permission.Surroundings, modules, denoDir, name string) (readable []string, err error) {
	for _, kind := range []string{"npm", "remote"} {
		from, at, as := filepath.Join(modules, kind), filepath.Join(denoDir, kind), filepath.Join(name, kind)
		around.SeePackages(from, as)
		if around.OwnRoot() {
			err = os.Mkdir(at, 0o700)
		} else {
			err = os.Symlink(from, at)
		}
		if err != nil && !(around.OwnRoot() && errors.Is(err, fs.ErrExist)) {
			return nil, err
		}
		if kind == "npm" {
			readable = append(readable, as)
			if !around.OwnRoot() { // Deno asks for what the link leads to
				readable = append(readable, from)
			}
		}
	}
	return readable, nil
}

// cachedURL is where Deno keeps a URL's content: remote/{scheme}/{host}, with
// its port, and the SHA-256 of path and query.
func cachedURL(u *url.URL) string {
	host := u.Hostname()
	if u.Port() != "" {
		host += "_PORT" + u.Port()
	}
	rest := u.EscapedPath()
	if u.RawQuery != "" {
		rest += "?" + u.RawQuery
	}
	sum := sha256.Sum256([]byte(rest))
	return "remote/" + u.Scheme + "/" + host + "/" + hex.EncodeToString(sum[:])
}

// has says that the plan holds an npm package of that name.
func (p Plan) has(name string) bool {
	return slices.ContainsFunc(p.Modules, func(module string) bool { return strings.HasSuffix(path.Dir(module), "/"+name) })
}

// NarrowManifest leaves those versions in a manifest of npm's or JSR's, as Deno
// keeps it: a JSON object, perhaps with a comment of Deno's after it. before is
// what became of the manifest the last time, empty if there was none. Of what a version
// can do without, has leaves what is there; nil leaves all.
func NarrowManifest(text, before []byte, versions map[string]bool, has func(name string) bool) ([]byte, error) {
	manifest, rest, err := readManifest(text)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(manifest["versions"], &all); err != nil {
		return nil, err
	}
	maps.DeleteFunc(all, func(version string, _ json.RawMessage) bool { return !versions[version] })
	for version := range all {
		if has != nil {
			all[version] = withoutAbsent(all[version], has)
		}
	}
	if len(before) > 0 {
		earlier, _, err := readManifest(before)
		if err == nil {
			err = json.Unmarshal(earlier["versions"], &all) // what was there stays
		}
		if err != nil {
			return nil, err
		}
	}
	if manifest["versions"], err = json.Marshal(all); err != nil {
		return nil, err
	}
	delete(manifest, "latest") // of JSR's; Deno looks for the highest
	if given, npm := manifest["dist-tags"]; npm {
		var tags map[string]string
		if err := json.Unmarshal(given, &tags); err != nil {
			return nil, err
		}
		maps.DeleteFunc(tags, func(_, version string) bool { return all[version] == nil })
		if tags == nil {
			tags = map[string]string{}
		}
		if tags["latest"] == "" && len(all) > 0 { // Deno wants to see one
			tags["latest"] = slices.Sorted(maps.Keys(all))[0]
		}
		if manifest["dist-tags"], err = json.Marshal(tags); err != nil {
			return nil, err
		}
	}
	narrowed, err := json.Marshal(manifest)
	return append(narrowed, rest...), err
}

// withoutAbsent leaves out of what a registry says of one version the packages that it
// can do without and that are not there: those for other systems, and optional peers.
// Without a lock file, Deno would look for them. What is of another form stays as it is.
func withoutAbsent(text json.RawMessage, has func(name string) bool) json.RawMessage {
	var all map[string]json.RawMessage
	var optional struct {
		Dependencies map[string]string `json:"optionalDependencies"`
		Peers        map[string]struct {
			Optional bool `json:"optional"`
		} `json:"peerDependenciesMeta"`
	}
	if errors.Join(json.Unmarshal(text, &all), json.Unmarshal(text, &optional)) != nil {
		return text
	}
	absent := map[string]bool{}
	for name, version := range optional.Dependencies {
		absent[name] = !has(name) && !strings.HasPrefix(version, "npm:") // which stands for another name
	}
	for name, peer := range optional.Peers {
		absent[name] = peer.Optional && !has(name)
	}
	for _, kind := range []string{"dependencies", "optionalDependencies", "peerDependencies"} {
		var named map[string]json.RawMessage
		if json.Unmarshal(all[kind], &named) == nil {
			maps.DeleteFunc(named, func(name string, _ json.RawMessage) bool { return absent[name] })
			all[kind], _ = json.Marshal(named) // as it was read
		}
	}
	left, _ := json.Marshal(all)
	return left
}

func readManifest(text []byte) (manifest map[string]json.RawMessage, rest []byte, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&manifest); err != nil {
		return nil, nil, err
	}
	if manifest == nil {
		return nil, nil, errors.New("it is no object")
	}
	return manifest, text[decoder.InputOffset():], nil
}
