package gateway

import (
	"encoding/json"
	"fmt"
	"net/url"

	"rillbox/cache/egress"
)

// LockedFiles are the files that Pyodide's lock file names, with their sha256.
func LockedFiles(lock []byte) (map[string]string, error) {
	files, err := (&Gateway{cdn: &url.URL{}}).readLock(lock)
	sums := map[string]string{}
	for name, file := range files {
		sums[name] = file.SHA256
	}
	return sums, err
}

// readLock reads the files that Pyodide's lock file names.
func (g *Gateway) readLock(lock []byte) (map[string]entry, error) {
	files := map[string]entry{}
	var doc struct {
		Packages map[string]struct {
			Name     string `json:"name"`
			Version  string `json:"version"`
			FileName string `json:"file_name"`
			SHA256   string `json:"sha256"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(lock, &doc); err != nil {
		return nil, err
	}
	for _, p := range doc.Packages {
		if !isFilename(p.FileName) || !isSHA256(p.SHA256) || !isProjectName(p.Name) {
			return nil, fmt.Errorf("package %q: file name %q with sha256 %q is malformed", p.Name, p.FileName, p.SHA256)
		}
		link := g.cdn.JoinPath(p.FileName)
		link.User = nil
		files[p.FileName] = entry{
			File: File{
				Name: egress.NormalizePython(p.Name), Version: p.Version, Filename: p.FileName,
				URL: link.String(), SHA256: p.SHA256, Source: "pyodide",
			},
			link: link, route: egress.Route{Home: g.cdn}, registry: link.Hostname(),
		}
	}
	return files, nil
}
