package deno

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// Variables are those of an operator's that programs get, by name. Each of the list
// is a name, which stands for the variable of our own environment if there is one, or
// NAME=value; the later of two of one name counts.
func Variables(list []string) map[string]string {
	variables := map[string]string{}
	for _, item := range list {
		name, value, given := strings.Cut(item, "=")
		if !given {
			value, given = os.LookupEnv(name)
		}
		if given {
			variables[name] = value
		}
	}
	return variables
}

// environ is Variables as a process gets them.
func environ(list []string) (env []string) {
	variables := Variables(list)
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		env = append(env, name+"="+variables[name])
	}
	return env
}

var variableName = pattern(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Variables that a child has from us, or that change how Deno and the system's
// libraries work before a program does: some reach the network, or load code.
var (
	ownVariables        = []string{"HOME", "PATH", "NO_COLOR", "FORCE_COLOR", "JSR_URL", "JSR_NPM_URL", "PYTHONINSPECT", "PYTHONDONTWRITEBYTECODE", "GCONV_PATH", "LOCPATH"}
	ownVariablePrefixes = []string{"DENO_", "RILLBOX_", "LD_", "DYLD_", "GLIBC_", "MALLOC_", "NODE_", "NPM_CONFIG_", "OTEL_", "RUST_", "V8_"}
)

// CheckVariable says why programs can't have a variable of that name. It does not
// repeat what is no name: that may be a piece of a value.
func CheckVariable(name string) error {
	if !variableName().MatchString(name) {
		return fmt.Errorf("want names of variables (letters, digits and _), alone or as NAME=value")
	}
	upper := strings.ToUpper(name) // so is what npm reads
	own := func(prefix string) bool { return strings.HasPrefix(upper, prefix) }
	if slices.Contains(ownVariables, upper) || slices.ContainsFunc(ownVariablePrefixes, own) {
		return fmt.Errorf("%s can't be given to programs: it would change how their runtime works", name)
	}
	return nil
}
