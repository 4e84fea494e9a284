package gateway

import (
	"fmt"
	"regexp"
	"strings"

	"rillbox/cache/egress"
)

const (
	maxName     = 128 // bytes of a project's name
	maxFilename = 255 // bytes of a file's name
)

var (
	projectName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	// filename holds what distributions, Pyodide's own archives and wheels'
	// local versions ("1.0+cpu", epochs "1!2.0") use, and nothing with a meaning in
	// a path, a URL or a terminal.
	filename = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+!-]*$`)
	digest   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// isProjectName reports whether name is a valid project name (PEP 508).
func isProjectName(name string) bool {
	return len(name) <= maxName && projectName.MatchString(name)
}

// isFilename reports whether name is safe as the last part of a path or URL.
func isFilename(name string) bool {
	return len(name) <= maxFilename && filename.MatchString(name)
}

// isSHA256 reports whether s is a SHA-256 in lower-case hexadecimal.
func isSHA256(s string) bool { return digest.MatchString(s) }

// wheelName reads the project (normalised) and the version from a wheel's file
// name: {project}-{version}[-{build}]-{python}-{abi}-{platform}.whl, see the
// binary distribution format of the Python packaging guide (PEP 427).
func wheelName(file string) (project, version string, err error) {
	stem, isWheel := strings.CutSuffix(file, ".whl")
	parts := strings.Split(stem, "-")
	if !isWheel || !isFilename(file) || (len(parts) != 5 && len(parts) != 6) {
		return "", "", fmt.Errorf("%.300q is not the file name of a wheel", file)
	}
	for _, part := range parts {
		if part == "" {
			return "", "", fmt.Errorf("%.300q is not the file name of a wheel: a part of it is empty", file)
		}
	}
	if !isProjectName(parts[0]) {
		return "", "", fmt.Errorf("%.300q is not the file name of a wheel: %.300q can't be a project", file, parts[0])
	}
	if len(parts) == 6 && (parts[2][0] < '0' || parts[2][0] > '9') {
		return "", "", fmt.Errorf("%.300q is not the file name of a wheel: the build number %.300q has no digit in front", file, parts[2])
	}
	return egress.NormalizePython(parts[0]), parts[1], nil
}
