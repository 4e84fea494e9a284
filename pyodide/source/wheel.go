package source

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"rillbox/cache/egress"
)

const (
	infoSuffix = ".dist-info"
	dataSuffix = ".data"

	maxMetadata = 4 << 20 // bytes of METADATA that are read
)

// wheelText is the file WHEEL of what Wheel writes: what is in it has been looked at.
const wheelText = "Wheel-Version: 1.0\nGenerator: rillbox\nRoot-Is-Purelib: true\nTag: py3-none-any\n"

// WheelName is the file name of the wheel that Wheel writes.
func WheelName(project, version string) string {
	escape := strings.NewReplacer("-", "_", ".", "_").Replace
	return escape(egress.NormalizePython(project)) + "-" + strings.ReplaceAll(version, "-", "_") + "-py3-none-any.whl"
}

// Wheel checks a wheel that was built of a source, and writes it anew: with files of pure
// Python alone, and a WHEEL and a RECORD that say so. Its project and version must be the
// source's.
func Wheel(built []byte, project, version string, w io.Writer) error {
	entries, err := readZip(bytes.NewReader(built), int64(len(built)))
	if err != nil {
		return err
	}
	info, err := infoOf(entries, project, version)
	if err != nil {
		return err
	}
	out := rewritten{to: zip.NewWriter(w), budget: newBudget(), seen: map[string]bool{}, info: info}
	// What a wheel is decompressed from most often is its image.
	out.to.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	var metadata strings.Builder
	for _, f := range entries {
		if strings.HasSuffix(f.Name, "/") && f.Mode().IsDir() {
			continue
		}
		name, err := out.judge(f)
		if err != nil {
			return err
		}
		below, inInfo := strings.CutPrefix(name, info+"/")
		if inInfo && slices.Contains([]string{"WHEEL", "RECORD", "RECORD.jws", "RECORD.p7s"}, below) {
			continue
		}
		content, err := f.Open()
		if err != nil {
			return fmt.Errorf("%s: %w", shown(name), err)
		}
		var also io.Writer = io.Discard
		if inInfo && below == "METADATA" && f.UncompressedSize64 <= maxMetadata {
			also = &metadata
		}
		err = errors.Join(out.add(name, io.TeeReader(content, also)), content.Close())
		if err != nil {
			return err
		}
	}
	if err := isOf(metadata.String(), project, version); err != nil {
		return err
	}
	if err := out.add(info+"/WHEEL", strings.NewReader(wheelText)); err != nil {
		return err
	}
	return out.finish()
}

// infoOf is the one dist-info directory of a wheel, which must be that of the source.
func infoOf(entries []*zip.File, project, version string) (string, error) {
	info := ""
	for _, f := range entries {
		top, _, _ := strings.Cut(f.Name, "/")
		stem, isInfo := strings.CutSuffix(top, infoSuffix)
		if !isInfo {
			stem, isInfo = strings.CutSuffix(top, dataSuffix)
		}
		if !isInfo {
			continue
		}
		name, its, ok := strings.Cut(stem, "-")
		if !ok || egress.NormalizePython(name) != egress.NormalizePython(project) || !SameVersion(its, version) {
			return "", fmt.Errorf("the wheel that was built has %s, and is to be %s %s", shown(top), project, version)
		}
		if strings.HasSuffix(top, infoSuffix) {
			if info != "" && info != top {
				return "", fmt.Errorf("the wheel that was built has both %s and %s", shown(info), shown(top))
			}
			info = top
		}
	}
	if info == "" {
		return "", errors.New("the wheel that was built does not say what it is: it has no dist-info directory")
	}
	return info, nil
}

// isOf checks the name and the version in a wheel's METADATA.
func isOf(metadata, project, version string) error {
	var names, versions []string
	for line := range strings.Lines(metadata) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		key, value, _ := strings.Cut(line, ":")
		switch strings.ToLower(key) {
		case "name":
			names = append(names, strings.TrimSpace(value))
		case "version":
			versions = append(versions, strings.TrimSpace(value))
		}
	}
	if len(names) != 1 || len(versions) != 1 || egress.NormalizePython(names[0]) != egress.NormalizePython(project) || !SameVersion(versions[0], version) {
		return fmt.Errorf("the wheel that was built says that it is %s %s, and is to be %s %s",
			shown(strings.Join(names, ", ")), shown(strings.Join(versions, ", ")), project, version)
	}
	return nil
}

// native matches files that only another machine can run.
var native = regexp.MustCompile(`(?i)\.(pyd|dll|dylib|so(\.[0-9]+)*)$`)

// rewritten is the wheel that is being written.
type rewritten struct {
	to     *zip.Writer
	info   string
	seen   map[string]bool
	record [][]string
	budget
}

// judge gives the path of an entry that may be in a wheel.
func (r *rewritten) judge(f *zip.File) (name string, err error) {
	if name, err = inside(f.Name); err != nil {
		return "", err
	}
	switch {
	case name != f.Name || f.Mode()&fs.ModeType != 0:
		return "", fmt.Errorf("%s is no ordinary file", shown(f.Name))
	case r.seen[name]:
		return "", fmt.Errorf("%s is there twice", shown(name))
	case native.MatchString(name):
		return "", fmt.Errorf("the wheel that was built holds native code, %s, and WebAssembly's Python can't run it", shown(name))
	case f.UncompressedSize64 > maxUnpacked:
		return "", r.count(name, -1)
	}
	r.seen[name] = true
	return name, r.count(name, int64(f.UncompressedSize64))
}

// add writes a file. Package zip checks that its content has the size it was judged by.
func (r *rewritten) add(name string, content io.Reader) error {
	to, err := r.to.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: builtTime})
	if err != nil {
		return err
	}
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(to, hash), content)
	if err != nil {
		return fmt.Errorf("%s: %w", shown(name), err)
	}
	r.record = append(r.record, []string{name, "sha256=" + base64.RawURLEncoding.EncodeToString(hash.Sum(nil)), fmt.Sprint(size)})
	return nil
}

// finish writes the RECORD.
func (r *rewritten) finish() error {
	record := r.info + "/RECORD"
	to, err := r.to.CreateHeader(&zip.FileHeader{Name: record, Method: zip.Deflate, Modified: builtTime})
	if err != nil {
		return err
	}
	lines := csv.NewWriter(to)
	if err := lines.WriteAll(append(r.record, []string{record, "", ""})); err != nil {
		return err
	}
	return r.to.Close()
}
