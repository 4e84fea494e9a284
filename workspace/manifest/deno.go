package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
)

// denoConfigs reads deno.json: the nearest, and that of the workspace which this is in.
func (r *reader) denoConfigs() error {
	member := ""
	found := false
	for _, folder := range r.folders() {
		o, err := r.denoConfig(folder)
		if err != nil {
			return err
		}
		if o.fields == nil {
			continue
		}
		members, err := r.workspaces(o)
		if err != nil {
			return err
		}
		if found && !slices.ContainsFunc(members, func(one string) bool { return path.Join(folder, one) == member }) {
			continue // it is another project's
		}
		if err := r.denoFields(o, folder, found); err != nil {
			return err
		}
		for _, one := range members {
			if err := r.member(path.Join(folder, one)); err != nil {
				return err
			}
		}
		member, found = folder, true
	}
	if found {
		return nil
	}
	o, err := r.object(path.Join(r.base, "import_map.json"))
	if err != nil || o.fields == nil {
		return err
	}
	return r.importMap(o, r.base)
}

// denoConfig is the deno.json of a folder, or its deno.jsonc.
func (r *reader) denoConfig(folder string) (o object, err error) {
	for _, name := range []string{"deno.json", "deno.jsonc"} {
		if o, err = r.object(path.Join(folder, name)); err != nil || o.fields != nil {
			return o, err
		}
	}
	return o, nil
}

// denoFields reads a deno.json; outer is that of a workspace around the nearest.
func (r *reader) denoFields(o object, folder string, outer bool) error {
	for _, field := range []string{"links", "patch", "unstable", "allowScripts", "minimumDependencyAge", "catalog", "catalogs"} {
		if _, there := o.fields[field]; there {
			r.note("%s: %q is not honoured", o.file, field)
		}
	}
	var name string
	if err := o.get("name", &name, "a string"); err != nil {
		return err
	}
	_, inline := o.fields["imports"]
	_, scopes := o.fields["scopes"]
	var other string
	if err := o.get("importMap", &other, "a string"); err != nil {
		return err
	}
	if err := r.importMap(o, folder); err != nil {
		return err
	}
	if other != "" && !inline && !scopes {
		if err := r.otherMap(o, folder, other); err != nil {
			return err
		}
	}
	if _, exports := o.fields["exports"]; exports && packageName.MatchString(name) {
		if err := r.own(o, name, folder); err != nil {
			return err
		}
	}
	if raw, there := o.fields["overrides"]; there && r.m.Overrides == nil && string(raw) != "null" {
		if err := r.overrides(o); err != nil {
			return err
		}
	}
	if err := r.lockField(o, folder); err != nil {
		return err
	}
	return r.compilerOptions(o, outer)
}

// lockField reads where Deno has its lock file, if it has one.
func (r *reader) lockField(o object, folder string) error {
	raw, there := o.fields["lock"]
	if !there {
		return nil
	}
	var lock struct {
		Path   string `json:"path"`
		Frozen bool   `json:"frozen"`
	}
	var is bool
	if json.Unmarshal(raw, &is) == nil {
		r.noLock = !is
		return nil
	}
	if json.Unmarshal(raw, &lock.Path) != nil && json.Unmarshal(raw, &lock) != nil {
		return fmt.Errorf("%s: \"lock\" is no path, no object and neither true nor false", o.file)
	}
	r.m.Frozen = r.m.Frozen || lock.Frozen
	if lock.Path != "" {
		r.lockAt = path.Join(folder, lock.Path)
		if path.IsAbs(lock.Path) || r.lockAt == ".." || strings.HasPrefix(r.lockAt, "../") {
			return fmt.Errorf("%s: \"lock\" is %.200q, which is no file of the project", o.file, lock.Path)
		}
	}
	return nil
}

// otherMap reads the import map that a deno.json names.
func (r *reader) otherMap(o object, folder, name string) error {
	at := path.Join(folder, name)
	if strings.Contains(name, ":") || path.IsAbs(name) || at == ".." || strings.HasPrefix(at, "../") {
		return fmt.Errorf("%s: \"importMap\" is %.200q, which is no file of the project", o.file, name)
	}
	other, err := r.object(at)
	if err == nil && other.fields == nil {
		err = fmt.Errorf("%s: \"importMap\" is %.200q, which is not there", o.file, name)
	}
	if err != nil {
		return err
	}
	return r.importMap(other, path.Dir(at))
}

// compilerOptions reads how JSX is compiled.
func (r *reader) compilerOptions(o object, outer bool) error {
	var options struct {
		JSX                    string `json:"jsx"`
		Source                 string `json:"jsxImportSource"`
		Factory                string `json:"jsxFactory"`
		Fragment               string `json:"jsxFragmentFactory"`
		ExperimentalDecorators bool   `json:"experimentalDecorators"`
	}
	if err := o.get("compilerOptions", &options, "an object of compiler options"); err != nil {
		return err
	}
	if options.ExperimentalDecorators {
		r.note("%s: \"experimentalDecorators\" is not honoured: decorators are those of JavaScript", o.file)
	}
	if outer && options.JSX == "" || r.m.JSX.Source != "" || r.m.JSX.Factory != "" {
		return nil
	}
	switch options.JSX {
	case "react-jsx", "react-jsxdev", "precompile":
		if options.Source == "" {
			options.Source = "react"
		}
		if s := options.Source; !packageName.MatchString(s) && !isPackage(s) {
			r.note("%s: \"jsxImportSource\" is not honoured: %.200q is no package", o.file, s)
			return nil
		}
		r.m.JSX.Source = options.Source
	case "react", "":
		if options.JSX == "" && options.Factory == "" {
			return nil
		}
		r.m.JSX.Factory, r.m.JSX.Fragment = "React.createElement", "React.Fragment"
		if isMember(options.Factory) {
			r.m.JSX.Factory = options.Factory
		}
		if isMember(options.Fragment) {
			r.m.JSX.Fragment = options.Fragment
		}
	default:
		r.note("%s: \"jsx\" is not honoured: %.200q is no way to run it", o.file, options.JSX)
	}
	return nil
}

// isMember says that a text is a name or names with dots between, as "React.createElement".
func isMember(text string) bool {
	return text != "" && len(text) < 200 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$.") == ""
}

// isPackage says that a target is a package's specifier.
func isPackage(target string) bool {
	scheme, rest, has := strings.Cut(target, ":")
	return has && (scheme == "npm" || scheme == "jsr") && rest != "" && len(target) < 500 &&
		!strings.ContainsAny(target, "\x00\\\"'*\r\n\t") && !slices.Contains(strings.Split(target, "/"), "..")
}

// importMap reads "imports" and "scopes"; paths in them are from a folder.
func (r *reader) importMap(o object, folder string) error {
	if raw, there := o.fields["imports"]; there {
		if err := r.denoImports(&r.m.Imports, raw, folder, o); err != nil {
			return err
		}
	}
	var scopes map[string]json.RawMessage
	if err := o.get("scopes", &scopes, "an object"); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(scopes)) {
		imports := map[string]string{}
		if err := r.denoImports(&imports, scopes[key], folder, o); err != nil {
			return err
		}
		at := key
		if u, err := url.Parse(key); err != nil || (u.Scheme != "https" && u.Scheme != "http") {
			within := path.Join(folder, key)
			if err != nil || u.Scheme != "" || path.IsAbs(key) || within == ".." || strings.HasPrefix(within, "../") {
				r.note("%s: the scope %.200q is not honoured: it is no folder of the project and no https: URL", o.file, key)
				continue
			}
			if strings.HasSuffix(key, "/") || key == "." {
				within += "/"
			}
			at = r.path(within)
		}
		r.scope(at, imports)
	}
	return nil
}

// denoImports reads an object of import map entries, whose paths are from a folder.
func (r *reader) denoImports(to *map[string]string, raw json.RawMessage, folder string, o object) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var entries map[string]json.RawMessage
	if json.Unmarshal(raw, &entries) != nil {
		return fmt.Errorf("%s: \"imports\" is not an object", o.file)
	}
	if err := r.counted(len(entries)); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		target, err := textOf(entries[key])
		if err != nil {
			r.refuse(key, "%s maps it to nothing", o.file)
			continue
		}
		if reason := unfitKey(key); reason != "" {
			r.note("%s: the import %.200q is not honoured: %s", o.file, key, reason)
			continue
		}
		scheme, _, has := strings.Cut(target, ":")
		switch {
		case strings.HasPrefix(target, "./"), strings.HasPrefix(target, "../"):
			plain, err := url.PathUnescape(target)
			if err != nil || strings.Contains(target, "*") || strings.HasSuffix(key, "/") && !strings.HasSuffix(plain, "/") {
				r.refuse(key, "%s makes it %.200q, which is no path", o.file, target)
				continue
			}
			r.addFile(to, key, folder, plain, o.file)
		case isPackage(target), has && scheme == "node" && len(target) < 100:
			r.add(made(to), key, target)
		case has && (scheme == "https" || scheme == "http") && len(target) < 2000 && !strings.Contains(target, "*"):
			r.add(made(to), key, target)
		default:
			r.refuse(key, "%s makes it %.200q, which is no package, no https: URL and no path that begins with ./", o.file, target)
		}
	}
	return nil
}

// unfitKey is why a name can't be mapped to another. What Deno has of its own, and what
// is at a path, are never another thing than they say: our modules name such too.
func unfitKey(key string) string {
	scheme, _, has := strings.Cut(key, ":")
	switch {
	case key == "", len(key) > 1000, strings.ContainsAny(key, "*\x00\\\"'`\r\n"):
		return "it is no name of a module"
	case strings.HasPrefix(key, "."), strings.HasPrefix(key, "/"):
		return "a path is always the file at that path"
	case has && !slices.Contains([]string{"npm", "jsr", "https", "http"}, scheme):
		return "names that begin with " + scheme + ": can't be changed"
	}
	return ""
}
