package gateway

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"regexp"
	"strings"
)

var (
	indexList = regexp.MustCompile(`(?m)^DEFAULT_INDEX_URLS\b[^=\n]*=\s*([\[(]?)`)
	constant  = regexp.MustCompile(`(?m)^([A-Za-z_]\w*)\b[^=\n]*=\s*("[^"\n]*"|'[^'\n]*')\s*(?:#.*)?$`)
	listItem  = regexp.MustCompile(`^[\s,]*(?:#[^\n]*\n\s*)*("[^"\n]*"|'[^'\n]*'|[A-Za-z_]\w*)`)
)

// DefaultIndexURL reads from micropip's wheel, the file micropipWheel, which
// index micropip asks by itself: the first of DEFAULT_INDEX_URLS. It is what
// to use where pip is not configured.
func DefaultIndexURL(micropipWheel string) (string, error) {
	wheel, err := zip.OpenReader(micropipWheel)
	if err != nil {
		return "", fmt.Errorf("read micropip's default index from its wheel: %w", err)
	}
	defer wheel.Close()
	names, _ := fs.Glob(wheel, "micropip/*.py") // the pattern is valid
	for _, name := range names {
		source, err := fs.ReadFile(wheel, name)
		if err != nil {
			return "", fmt.Errorf("read micropip's default index from its wheel: %w", err)
		}
		if found, err := defaultIndex(string(source)); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("%s names no default package index: configure one for pip (pip config set global.index-url …)", micropipWheel)
}

// defaultIndex evaluates the first item of DEFAULT_INDEX_URLS in Python source:
// a string, or the name of a module's constant.
func defaultIndex(source string) (string, error) {
	at := indexList.FindStringIndex(source)
	if at == nil {
		return "", errors.New("no DEFAULT_INDEX_URLS")
	}
	item := listItem.FindStringSubmatch(source[at[1]:])
	if item == nil {
		return "", errors.New("DEFAULT_INDEX_URLS is not a list of strings")
	}
	value := item[1]
	if value[0] != '"' && value[0] != '\'' {
		literal := ""
		for _, c := range constant.FindAllStringSubmatch(source, -1) {
			if c[1] == value {
				literal = c[2]
			}
		}
		if literal == "" {
			return "", fmt.Errorf("%s is not a string constant", value)
		}
		value = literal
	}
	value = value[1 : len(value)-1]
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "https" || u.Host == "" || strings.ContainsAny(value, "{}\\") {
		return "", fmt.Errorf("%q is not the https URL of an index", value)
	}
	return value, nil
}
