package gateway

import (
	"regexp"
	"slices"
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
// name, {project}-{version}[-{build}]-{python}-{abi}-{platform}.whl: see the
// binary distribution format of the Python packaging guide (PEP 427).
func wheelName(file string) (project, version string, ok bool) {
	stem, isWheel := strings.CutSuffix(file, ".whl")
	parts := strings.Split(stem, "-")
	if len(parts) == 6 && strings.IndexAny(parts[2], "0123456789") == 0 { // a build number
		parts = slices.Delete(parts, 2, 3)
	}
	if !isWheel || !isFilename(file) || len(parts) != 5 || slices.Contains(parts, "") || !isProjectName(parts[0]) {
		return "", "", false
	}
	return egress.NormalizePython(parts[0]), parts[1], true
}

// sourceName reads the project (normalised) and the version from a source archive's file
// name, {project}-{version}.tar.gz or .zip (PEP 625).
func sourceName(file string) (project, version string, ok bool) {
	stem, ok := strings.CutSuffix(file, ".tar.gz")
	if !ok {
		stem, ok = strings.CutSuffix(file, ".zip")
	}
	at := strings.LastIndexByte(stem, '-')
	if !ok || !isFilename(file) || at < 0 || at == len(stem)-1 || !isProjectName(stem[:at]) {
		return "", "", false
	}
	return egress.NormalizePython(stem[:at]), stem[at+1:], true
}
