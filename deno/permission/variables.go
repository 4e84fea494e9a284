package permission

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Variables are the environment variables that programs get, by name. Each item of
// the operator's list is NAME=value, or a name alone, which passes on our own variable
// if it is set. The last item of a name counts.
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

// Environ is Variables as a list of NAME=value, in order.
func Environ(list []string) (env []string) {
	variables := Variables(list)
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		env = append(env, name+"="+variables[name])
	}
	return env
}

// Variables that a child has from us, or that change how Deno and the system's
// libraries work before a program does: some reach the network, or load code.
var (
	ownVariables        = []string{"HOME", "PATH", "NO_COLOR", "FORCE_COLOR", "JSR_URL", "JSR_NPM_URL", "PYTHONINSPECT", "PYTHONDONTWRITEBYTECODE", "GCONV_PATH", "LOCPATH"}
	ownVariablePrefixes = []string{"DENO_", "RILLBOX_", "LD_", "DYLD_", "GLIBC_", "MALLOC_", "NODE_", "NPM_CONFIG_", "OTEL_", "RUST_", "V8_"}
)

// CheckVariable says why programs can't have a variable of that name. The error does
// not repeat an invalid name, which may be part of a secret value.
func CheckVariable(name string) error {
	if isName, _ := regexp.MatchString(`^[A-Za-z_][A-Za-z0-9_]*$`, name); !isName {
		return fmt.Errorf("want names of variables (letters, digits and _), alone or as NAME=value")
	}
	upper := strings.ToUpper(name) // so is what npm reads
	own := func(prefix string) bool { return strings.HasPrefix(upper, prefix) }
	if slices.Contains(ownVariables, upper) || slices.ContainsFunc(ownVariablePrefixes, own) {
		return fmt.Errorf("%s can't be given to programs: it would change how their runtime works", name)
	}
	return nil
}

// IgnoreProxies hides the variables that name a proxy from a program that may not
// reach every host, except those that the list of Variables passes on. Deno reads them
// whenever it makes an HTTP client and asks no permission for the proxy's address, so
// that a program that can set them could send its requests anywhere.
func (p Permissions) IgnoreProxies(passedOn []string) Permissions {
	if everywhere, _ := p.Allowed("net"); everywhere {
		return p
	}
	return p.With("ignore-env", slices.DeleteFunc(slices.Clone(proxyVariables), func(name string) bool {
		return slices.ContainsFunc(passedOn, func(item string) bool {
			given, _, _ := strings.Cut(item, "=")
			return given == name
		})
	})...)
}

var proxyVariables = strings.Fields("HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy")
