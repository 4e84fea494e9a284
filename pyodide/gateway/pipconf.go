package gateway

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// PipIndexURLs returns the package indexes that this machine's pip is
// configured with, without a slash at the end: index-url first, then the extra
// ones. It is empty when pip would use its own default, and when pip is told to
// use no index. Sources and their ranks are pip's: the environment, then
// $PIP_CONFIG_FILE, then the virtual environment's, the user's and the
// machine's pip.conf.
func PipIndexURLs() (urls []string, err error) {
	conf, err := readPipConfig()
	if err != nil {
		return nil, err
	}
	if isTrue(conf["no-index"]) {
		return nil, nil
	}
	for _, raw := range append(strings.Fields(conf["index-url"]), strings.Fields(conf["extra-index-url"])...) {
		if _, err := operatorURL(raw); err != nil {
			return nil, fmt.Errorf("pip's configuration: package index: %w", err)
		}
		urls = append(urls, strings.TrimRight(raw, "/"))
	}
	return urls, nil
}

// readPipConfig merges pip's settings, those of higher rank winning.
func readPipConfig() (map[string]string, error) {
	conf := map[string]string{}
	for _, path := range pipConfigFiles() {
		if err := readPipFile(path, conf); err != nil {
			return nil, fmt.Errorf("read pip's configuration: %w", err)
		}
	}
	for _, key := range []string{"index-url", "extra-index-url", "no-index"} {
		name := "PIP_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
		conf[key] = cmp.Or(os.Getenv(name), conf[key])
	}
	return conf, nil
}

// pipConfigFiles lists the files that pip would read, lowest rank first.
func pipConfigFiles() []string {
	named := os.Getenv("PIP_CONFIG_FILE")
	if named == os.DevNull {
		return nil
	}
	var files []string
	if runtime.GOOS == "darwin" {
		files = append(files, "/Library/Application Support/pip/pip.conf")
	} else {
		for _, dir := range filepath.SplitList(cmp.Or(os.Getenv("XDG_CONFIG_DIRS"), "/etc/xdg")) {
			files = append(files, filepath.Join(dir, "pip", "pip.conf"))
		}
		files = append(files, "/etc/pip.conf")
	}
	if home, err := os.UserHomeDir(); err == nil && !exists(named) {
		files = append(files, filepath.Join(home, ".pip", "pip.conf"), userPipFile(home))
	}
	if venv := os.Getenv("VIRTUAL_ENV"); venv != "" {
		files = append(files, filepath.Join(venv, "pip.conf"))
	}
	if named != "" {
		files = append(files, named)
	}
	return files
}

func userPipFile(home string) string {
	if runtime.GOOS == "darwin" {
		if dir := filepath.Join(home, "Library", "Application Support", "pip"); exists(dir) {
			return filepath.Join(dir, "pip.conf")
		}
	}
	base := os.Getenv("XDG_CONFIG_HOME")
	if base == "" || runtime.GOOS == "darwin" {
		base = filepath.Join(home, ".config")
	}
	return filepath.Join(base, "pip", "pip.conf")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return path != "" && err == nil
}

// readPipFile adds the settings of the sections global and install, the latter
// winning, to conf. A file that is not there adds nothing.
func readPipFile(path string, conf map[string]string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	sections := map[string]map[string]string{"global": {}, "install": {}}
	var section map[string]string
	key := ""
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		text := strings.TrimSpace(line)
		switch {
		case text == "" || text[0] == '#' || text[0] == ';':
		case text[0] == '[':
			section, key = sections[strings.Trim(text, "[]")], ""
		case section == nil:
		case key != "" && (line[0] == ' ' || line[0] == '\t'): // goes on with the line before
			section[key] += " " + text
		default:
			at := strings.IndexAny(text, "=:")
			if at < 0 {
				key = ""
				continue
			}
			key = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(text[:at])), "_", "-")
			section[key] = strings.TrimSpace(text[at+1:])
		}
	}
	maps.Copy(conf, sections["global"])
	maps.Copy(conf, sections["install"])
	return lines.Err()
}

// isTrue reads a yes-or-no setting as pip does.
func isTrue(s string) bool {
	return slices.Contains([]string{"y", "yes", "t", "true", "on", "1"}, strings.ToLower(s))
}
