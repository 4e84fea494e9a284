package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// javaScript reads what decides for JavaScript and TypeScript, as Deno does: deno.json,
// then the workspace's own packages, then package.json.
func (r *reader) javaScript() error {
	if err := r.denoConfigs(); err != nil {
		return err
	}
	if err := r.nodePackages(); err != nil {
		return err
	}
	return r.denoLock()
}

// unhonoured are fields of package.json that change what a program gets, and that are not
// honoured.
var unhonoured = []string{"resolutions", "patchedDependencies", "packageExtensions", "pnpm", "catalog", "catalogs"}

// nodePackages reads package.json, the nearest and those above it.
func (r *reader) nodePackages() error {
	nearest := true
	var packages []object
	for _, folder := range r.folders() {
		o, err := r.object(path.Join(folder, "package.json"))
		if err != nil {
			return err
		}
		if o.fields == nil {
			continue
		}
		if nearest {
			if err := r.nearestPackage(o, folder); err != nil {
				return err
			}
		}
		nearest = false
		packages = append(packages, o)
		members, err := r.workspaces(o)
		if err != nil {
			return err
		}
		for _, member := range members {
			if err := r.member(path.Join(folder, member)); err != nil {
				return err
			}
		}
	}
	for _, o := range packages {
		for _, field := range unhonoured {
			if _, there := o.fields[field]; there {
				r.note("%s: %q is not honoured", o.file, field)
			}
		}
		if err := r.dependencies(&r.m.Imports, o); err != nil {
			return err
		}
		if r.m.Overrides == nil {
			if err := r.overrides(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// nearestPackage reads what holds for the package that the program is in.
func (r *reader) nearestPackage(o object, folder string) error {
	var name, kind string
	if err := o.get("name", &name, "a string"); err != nil {
		return err
	}
	if err := o.get("type", &kind, "a string"); err != nil {
		return err
	}
	r.m.ESM = kind == "module"
	r.m.CommonJS = r.m.CommonJS || kind == "commonjs"
	if _, exports := o.fields["exports"]; exports && packageName.MatchString(name) {
		if err := r.own(o, name, folder); err != nil {
			return err
		}
	}
	var internal map[string]json.RawMessage
	if err := o.get("imports", &internal, "an object"); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(internal)) {
		if !strings.HasPrefix(key, "#") || strings.Count(key, "*") > 1 {
			r.note("%s: %q in \"imports\" is not honoured: it is no name that begins with #", o.file, key)
			continue
		}
		target, ok := conditional(internal[key], 0)
		switch {
		case !ok:
			r.note("%s: %q in \"imports\" is not honoured: it has no file for Deno, Node or import", o.file, key)
		case strings.HasPrefix(target, "./"):
			r.addFile(&r.m.Imports, key, folder, target, o.file)
		default:
			r.alias(key, target, folder, o)
		}
	}
	return r.counted(len(internal))
}

// alias maps a name of "imports" to a package, which has the version that its own package
// gives it.
func (r *reader) alias(key, target, folder string, o object) {
	name := target
	if at := strings.Index(target[min(1, len(target)):], "/"); at >= 0 {
		name = target[:at+1]
		if strings.HasPrefix(target, "@") {
			if next := strings.Index(target[at+2:], "/"); next >= 0 {
				name = target[:at+2+next]
			} else {
				name = target
			}
		}
	}
	if !packageName.MatchString(name) {
		r.note("%s: %q in \"imports\" is not honoured: %q is no file of the package and no package's name", o.file, key, target)
		return
	}
	scope := map[string]string{}
	if r.dependencies(&scope, o) == nil && scope[name] != "" && strings.HasPrefix(scope[name], "npm:") {
		r.add(r.imports(), key, scope[name]+strings.TrimPrefix(target, name))
		return
	}
	r.add(r.imports(), key, "npm:"+target)
}

// imports are those of the whole program.
func (r *reader) imports() map[string]string { return made(&r.m.Imports) }

func made(m *map[string]string) map[string]string {
	if *m == nil {
		*m = map[string]string{}
	}
	return *m
}

// addFile maps a name to a file or folder, which is named from a folder of the project.
func (r *reader) addFile(to *map[string]string, name, folder, target, file string) {
	at := path.Join(folder, target)
	if at == ".." || strings.HasPrefix(at, "../") || strings.ContainsAny(target, "\x00\\") {
		r.refuse(name, "%s makes it %.200q, which is outside of the project", file, target)
		return
	}
	if strings.HasSuffix(target, "/") {
		at += "/"
	}
	r.add(made(to), name, r.path(at))
}

// conditions are those of exports and imports that hold here; the object's own order decides.
var conditions = []string{"deno", "node", "import", "module-sync", "default"}

// conditional reads a target of exports or imports: a string, the first of a list, or what
// the first condition that holds has.
func conditional(raw json.RawMessage, depth int) (target string, ok bool) {
	if text, err := textOf(raw); err == nil {
		return text, true
	}
	var list []json.RawMessage
	if depth < 10 && json.Unmarshal(raw, &list) == nil {
		for _, one := range list[:min(len(list), 10)] {
			if target, ok := conditional(one, depth+1); ok {
				return target, true
			}
		}
		return "", false
	}
	keys, values := ordered(raw)
	if depth == 10 {
		return "", false
	}
	for i, key := range keys {
		if slices.Contains(conditions, key) {
			if target, ok := conditional(values[i], depth+1); ok {
				return target, true
			}
		}
	}
	return "", false
}

// ordered are the fields of a JSON object in their order.
func ordered(raw json.RawMessage) (keys []string, values []json.RawMessage) {
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, nil
	}
	for decoder.More() {
		key, err := decoder.Token()
		var value json.RawMessage
		if err != nil || decoder.Decode(&value) != nil {
			return nil, nil
		}
		name, _ := key.(string)
		keys, values = append(keys, name), append(values, value)
	}
	return keys, values
}

var (
	packageName = regexp.MustCompile(`^(@[a-zA-Z0-9~._-]{1,214}/)?[a-zA-Z0-9~_][a-zA-Z0-9~._-]{0,213}$`)
	// A range of versions, or a tag.
	packageRange = regexp.MustCompile(`^[a-zA-Z0-9.*^~<>=|+ _-]{0,200}$`)
)

// dependencies maps the names that a package.json gives versions.
func (r *reader) dependencies(to *map[string]string, o object) error {
	for _, field := range []string{"dependencies", "devDependencies", "optionalDependencies", "peerDependencies"} {
		dependencies, err := o.texts(field)
		if err != nil {
			return err
		}
		if err := r.counted(len(dependencies)); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(dependencies)) {
			if !packageName.MatchString(name) {
				r.note("%s: %.200q in %q is no name of a package", o.file, name, field)
				continue
			}
			target, reason := dependency(name, strings.TrimSpace(dependencies[name]))
			_, own := r.m.Imports[name] // a workspace's own package wins
			switch {
			case reason == "":
				r.add(made(to), name, target)
			case !own:
				r.refuse(name, "%s makes it %.200q, which %s", o.file, dependencies[name], reason)
			}
		}
	}
	return nil
}

// dependency is the package that a dependency's version stands for; else the reason why
// there is none.
func dependency(name, version string) (target, reason string) {
	scheme, rest, has := strings.Cut(version, ":")
	if !has && !strings.Contains(version, "/") && packageRange.MatchString(version) {
		if version == "" {
			version = "*"
		}
		return "npm:" + name + "@" + version, ""
	}
	switch scheme {
	case "npm", "jsr":
		other, version := rest, "*"
		if at := strings.LastIndex(rest, "@"); at > 0 {
			other, version = rest[:at], rest[at+1:]
		} else if packageRange.MatchString(rest) && !packageName.MatchString(rest) || scheme == "jsr" && !strings.HasPrefix(rest, "@") {
			other, version = name, rest // "jsr:^1"
		}
		if !packageName.MatchString(other) || !packageRange.MatchString(version) {
			return "", "names no package"
		}
		return scheme + ":" + other + "@" + version, ""
	case "file", "link", "portal":
		return "", "is a directory or an archive of this machine: import it by its path"
	case "workspace":
		return "", "is a package of the workspace, and there is none of that name"
	case "catalog":
		return "", "is a version that another file gives, which is not read: write it here"
	}
	return "", "is no version of a package in the registry"
}

// overrides reads npm's overrides: what they give instead of versions that packages ask for.
func (r *reader) overrides(o object) error {
	raw, there := o.fields["overrides"]
	if !there {
		return nil
	}
	var value any
	err := json.Unmarshal(raw, &value)
	rules, ok := value.(map[string]any)
	if err != nil || !ok {
		return fmt.Errorf("%s: \"overrides\" is not an object", o.file)
	}
	kept := r.overridesOf(rules, o, 0)
	if len(kept) > 0 {
		r.m.Overrides, err = json.Marshal(kept)
	}
	return err
}

// overridesOf takes those rules that name packages and versions of a registry.
func (r *reader) overridesOf(rules map[string]any, o object, depth int) map[string]any {
	kept := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(rules)) {
		name, version := key, ""
		if at := strings.LastIndex(key, "@"); at > 0 {
			name, version = key[:at], key[at+1:]
		}
		valid := (key == "." || packageName.MatchString(name)) && packageRange.MatchString(version) && r.counted(1) == nil
		switch value := rules[key].(type) {
		case string:
			if reference, is := strings.CutPrefix(value, "$"); is {
				target := r.m.Imports[reference]
				value = strings.TrimPrefix(target, "npm:"+reference+"@")
				valid = valid && target != value
			}
			if alias, is := strings.CutPrefix(value, "npm:"); is {
				_, reason := dependency(name, "npm:"+alias)
				valid = valid && reason == ""
			} else {
				valid = valid && packageRange.MatchString(value)
			}
			if valid {
				kept[key] = value
			}
		case map[string]any:
			if valid = valid && depth < 20; valid {
				kept[key] = r.overridesOf(value, o, depth+1)
			}
		default:
			valid = false
		}
		if !valid {
			r.note("%s: the override of %.200q is not honoured: it is no version of a package in the registry", o.file, key)
		}
	}
	return kept
}
