package manifest

import (
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
)

// maxMembers is how many packages of a workspace are read.
const maxMembers = 100

// workspaces are the folders of a workspace's packages, from that of its root, whose
// manifest has them.
func (r *reader) workspaces(o object) (members []string, err error) {
	for _, field := range []string{"workspaces", "workspace"} {
		raw, there := o.fields[field]
		if !there {
			continue
		}
		var patterns []string
		if json.Unmarshal(raw, &patterns) != nil {
			var named struct{ Packages, Members []string }
			if json.Unmarshal(raw, &named) != nil {
				r.note("%s: %q is not honoured: it is no list of folders", o.file, field)
				continue
			}
			patterns = slices.Concat(named.Packages, named.Members)
		}
		for _, pattern := range patterns[:min(len(patterns), maxMembers)] {
			found, err := r.matching(path.Dir(o.at), pattern)
			if err != nil {
				return nil, err
			}
			if found == nil {
				r.note("%s: %.200q in %q is not honoured: it is no folder below, and no folder/*", o.file, pattern, field)
			}
			members = append(members, found...)
		}
	}
	if len(members) > maxMembers {
		r.note("%s: the workspace has more than %d packages: the others are not honoured", o.file, maxMembers)
		members = members[:maxMembers]
	}
	return members, nil
}

// matching are the folders that a pattern stands for; nil if it can't be read.
func (r *reader) matching(root, pattern string) ([]string, error) {
	pattern = strings.TrimSuffix(strings.TrimPrefix(pattern, "./"), "/")
	within := path.Join(root, pattern)
	if pattern == "" || path.IsAbs(pattern) || within == ".." || strings.HasPrefix(within, "../") {
		return nil, nil
	}
	folder, all := strings.CutSuffix(pattern, "/*")
	if pattern == "*" {
		folder, all = ".", true
	}
	if strings.ContainsAny(folder, "*?[]{}!\\") {
		return nil, nil
	}
	if !all {
		return []string{pattern}, nil
	}
	names, err := r.read.Folders(path.Join(root, folder))
	members := []string{}
	for _, name := range names {
		members = append(members, path.Join(folder, name))
	}
	return members, err
}

// member maps the name of a workspace's package to its files, and what its own manifests
// say to the modules in it.
func (r *reader) member(folder string) error {
	for _, name := range []string{"deno.json", "deno.jsonc", "package.json"} {
		o, err := r.object(path.Join(folder, name))
		if err != nil {
			return err
		}
		var called, kind string
		if err := errors.Join(o.get("name", &called, "a string"), o.get("type", &kind, "a string")); err != nil {
			return err
		}
		r.m.CommonJS = r.m.CommonJS || kind == "commonjs"
		if packageName.MatchString(called) {
			if err := r.own(o, called, folder); err != nil {
				return err
			}
		}
		scope := map[string]string{}
		if name == "package.json" {
			err = r.dependencies(&scope, o)
		} else {
			err = r.denoImports(&scope, o.fields["imports"], folder, o)
		}
		if err != nil {
			return err
		}
		if folder != r.base {
			r.scope(r.path(folder+"/"), scope)
		}
	}
	return nil
}

// scope maps names for the modules below a folder or URL.
func (r *reader) scope(at string, imports map[string]string) {
	if len(imports) == 0 {
		return
	}
	if r.m.Scopes == nil {
		r.m.Scopes = map[string]map[string]string{}
	}
	if r.m.Scopes[at] == nil {
		r.m.Scopes[at] = map[string]string{}
	}
	for name, target := range imports {
		r.add(r.m.Scopes[at], name, target)
	}
}

// own maps the name of a package of the project to the files that it exports. The name is
// no other package's, whatever it exports.
func (r *reader) own(o object, name, folder string) error {
	if _, nearer := r.m.Imports[name]; nearer {
		return nil
	}
	exports := map[string]json.RawMessage{}
	if raw, there := o.fields["exports"]; there {
		if keys, _ := ordered(raw); len(keys) > 0 && strings.HasPrefix(keys[0], ".") {
			if err := o.get("exports", &exports, "an object"); err != nil {
				return err
			}
		} else {
			exports["."] = raw
		}
	} else if path.Base(o.at) == "package.json" {
		main := "index.js"
		if err := o.get("main", &main, "a string"); err != nil {
			return err
		}
		exports["."], _ = json.Marshal("./" + r.main(folder, strings.TrimPrefix(main, "./")))
	}
	if err := r.counted(len(exports)); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(exports)) {
		target, ok := conditional(exports[key], 0)
		below, is := strings.CutPrefix(key, ".")
		if ok && is && strings.HasPrefix(target, "./") && (below == "" || below[0] == '/') && strings.Count(below, "*") < 2 {
			r.addFile(&r.m.Imports, name+below, folder, target, o.file)
		}
	}
	r.refuse(name, "%s is the project's own package of that name, and it exports no such file", o.file)
	return nil
}

// main completes the path of a package's main file as Node does.
func (r *reader) main(folder, main string) string {
	for _, ending := range []string{"", ".js", ".json", "/index.js"} {
		if _, err := r.read.ReadFile(path.Join(folder, main+ending), 1); err == nil {
			return main + ending
		}
	}
	return main
}
