//go:build !windows

package pyodide

import (
	"fmt"
	"regexp"
	"strings"

	"rillbox/supervisor/job"
)

var (
	// moduleName is a module's whole name.
	moduleName = regexp.MustCompile(`^[\pL_][\pL\pN_]*(\.[\pL_][\pL\pN_]*)*$`)
	// commandName is a package, with extras and a version (PEP 508) or without, and perhaps
	// the name of its command.
	commandName = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(\[[A-Za-z0-9._, -]*\])?([@=<>!~][^/]*)?(?:/([^/"\\\s]+))?$`)
)

// moduleProgram is a program that runs a module as `python -m` does.
func moduleProgram(name string) (string, error) {
	if !moduleName.MatchString(name) {
		return "", fmt.Errorf("%q is not the name of a module: want json.tool, pytest", name)
	}
	// The function is never called: what it imports tells which packages are needed.
	return fmt.Sprintf("def needs(): import %s.__main__\nimport runpy; runpy._run_module_as_main(%[1]q)\n", name), nil
}

// withCommand gives a program that runs a package's command its code and its packages.
func withCommand(p job.Program) (job.Program, error) {
	if p.Command == "" {
		return p, nil
	}
	found := commandName.FindStringSubmatch(p.Command)
	if found == nil {
		return p, job.Refuse("%q is not a package with a command: want httpie, httpie==3.2.4 or, where it has several, httpie/http", p.Command)
	}
	project, extras, version, command := found[1], found[2], found[3], found[4]
	if exact, ok := strings.CutPrefix(version, "@"); ok { // as others write it
		version = "==" + exact
	}
	p.Packages = append([]string{project + extras + version}, p.Packages...)
	p.Code = fmt.Sprintf("from rillbox.command import run; run(%q, %q)\n", project, command)
	return p, nil
}
