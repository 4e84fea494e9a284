package job

import (
	"encoding/json"
	"reflect"
)

// Manifest is what the files of a program's project say of what it may import: plain
// data, read where the program was. It grants nothing, names no registry and runs
// nothing. The zero value says nothing.
type Manifest struct {
	// Imports map what JavaScript and TypeScript import to what that stands for: a
	// package ("npm:ms@2.1.2"), a URL, a module of Node's, or a file by its path from
	// the program's directory ("./src/x.ts", "../x.ts"). A key that ends in a slash, or
	// stands for a package, is that of all below it; one "*" stands for the same text in
	// key and value.
	Imports map[string]string `json:"imports,omitempty"`
	// Scopes are such maps for the modules below a folder, by its path from the program's
	// directory ("./lib/"), or below a URL. The longest that fits comes first.
	Scopes map[string]map[string]string `json:"scopes,omitempty"`
	// Refused are names of packages that are not the registry's, each with the reason why
	// the program can't have them.
	Refused map[string]string `json:"refused,omitempty"`
	// Overrides are versions of what npm packages depend on, as package.json has them.
	Overrides json.RawMessage `json:"overrides,omitempty"`
	// ESM says that .js files are ECMAScript modules, whatever they look like, and CommonJS
	// that they may be CommonJS where they are imported.
	ESM      bool `json:"esm,omitempty"`
	CommonJS bool `json:"commonjs,omitempty"`
	JSX      JSX  `json:"jsx,omitzero"`
	// Requirements (PEP 508) are the versions that Python packages must have if the program,
	// or what it imports, needs them. Requires are the versions of Python (PEP 440).
	Requirements []string `json:"requirements,omitempty"`
	Requires     string   `json:"requires,omitempty"`
	// Lock has the exact versions; Frozen demands that it has all that the program needs.
	Lock   Lock `json:"lock,omitzero"`
	Frozen bool `json:"frozen,omitempty"`
}

// IsZero says that the manifest says nothing.
func (m Manifest) IsZero() bool { return reflect.ValueOf(m).IsZero() }

// Lock is what a lock file says of packages.
type Lock struct {
	// File is the file's path from the program's directory, for people; empty means that
	// there is none.
	File string `json:"file,omitempty"`
	// Deno is a lock file in Deno's form: versions and digests of npm's and JSR's packages,
	// and of URLs.
	Deno json.RawMessage `json:"deno,omitempty"`
	// Python are Python's packages.
	Python []LockedPackage `json:"python,omitempty"`
	// Foreign says that the file is none that Rillbox adds packages to.
	Foreign bool `json:"foreign,omitempty"`
	// Asked says that the request itself has these versions, so that they hold for the
	// packages that it names, too.
	Asked bool `json:"asked,omitempty"`
}

// LockedPackage is a version of a Python package, by its normalised name.
type LockedPackage struct {
	Name    string       `json:"name"`
	Version string       `json:"version"`
	Files   []LockedFile `json:"files"`
}

// LockedFile is a file of a package: a wheel or an archive.
type LockedFile struct {
	Name   string `json:"name"`
	URL    string `json:"url"` // where it was found; nothing is fetched from there for it
	Size   int64  `json:"size,omitempty"`
	SHA256 string `json:"sha256"`
}

// JSX is how a project's JSX becomes JavaScript.
type JSX struct {
	// Source is the package whose runtime makes elements.
	Source string `json:"source,omitempty"`
	// Factory and Fragment are called in place of that: "h", "Fragment".
	Factory  string `json:"factory,omitempty"`
	Fragment string `json:"fragment,omitempty"`
}
