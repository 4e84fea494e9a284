package cache

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"rillbox/cache/egress"
)

// NPM is one version of an npm package, from the registry that this machine's npm
// configuration names. src gives hashes and size; its URL is ignored. Fetching fails
// with an error that wraps ErrNoSource when no registry is configured.
func (c *Cache) NPM(name, version string, src egress.Source) Origin {
	return Origin{Name: "npm", Below: "package", Fetch: func(ctx context.Context, dir string, progress func(done, total int64)) error {
		conf := readNPMConfig()
		registry, err := conf.registry(ctx, name)
		if err != nil {
			return err
		}
		src := src
		if src.URL, err = c.npmTarball(ctx, conf, registry, name, version, dir); err != nil {
			return err
		}
		src.Archive = "tgz"
		src.Header = conf.auth(src.URL)
		return c.Download(ctx, src, dir, progress)
	}}
}

// npmTarball asks the registry for the tarball's URL. If it does not tell, the URL is
// the usual one.
func (c *Cache) npmTarball(ctx context.Context, conf npmConfig, registry, name, version, dir string) (string, error) {
	usual := fmt.Sprintf("%s/%s/-/%s-%s.tgz", registry, name, name[strings.LastIndex(name, "/")+1:], version)
	page := dir + ".json"
	defer os.Remove(page)
	about := registry + "/" + strings.ReplaceAll(name, "/", "%2f") + "/" + version
	if err := c.Download(ctx, egress.Source{URL: about, MaxBytes: 8 << 20, Header: conf.auth(about)}, page, nil); err != nil {
		if egress.IsOffline(err) {
			return "", err
		}
		return usual, nil
	}
	var doc struct {
		Dist struct {
			Tarball string `json:"tarball"`
		} `json:"dist"`
	}
	text, err := os.ReadFile(page)
	if err != nil || json.Unmarshal(text, &doc) != nil || doc.Dist.Tarball == "" {
		return usual, nil
	}
	return doc.Dist.Tarball, nil
}

// npmConfig holds the settings of .npmrc files, those of higher rank first.
type npmConfig []map[string]string

// readNPMConfig reads the environment, the user's and the machine's npmrc, but no
// project's.
func readNPMConfig() npmConfig {
	env := map[string]string{}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		if name = strings.ToLower(name); strings.HasPrefix(name, "npm_config_") && value != "" {
			env[strings.TrimPrefix(name, "npm_config_")] = value
		}
	}
	user := env["userconfig"]
	if home, err := os.UserHomeDir(); err == nil && user == "" {
		user = filepath.Join(home, ".npmrc")
	}
	conf := npmConfig{env, readNPMRC(user)}
	global := []string{env["globalconfig"]}
	if global[0] == "" {
		global = []string{"/usr/local/etc/npmrc", "/usr/etc/npmrc", "/etc/npmrc", "/opt/homebrew/etc/npmrc"}
	}
	for _, path := range global {
		conf = append(conf, readNPMRC(path))
	}
	return conf
}

// NPMRegistries lists the registries that this machine's npm configuration
// names, by environment or file.
func NPMRegistries() []string {
	var registries []string
	for _, settings := range readNPMConfig() {
		for key, value := range settings {
			if key == "registry" || strings.HasSuffix(key, ":registry") {
				registries = append(registries, value)
			}
		}
	}
	return registries
}

// readNPMRC reads key=value lines; what can't be read is empty.
func readNPMRC(path string) map[string]string {
	settings := map[string]string{}
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		key, value, ok := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.Trim(strings.TrimSpace(value), `"'`)
		if ok && !strings.HasPrefix(key, "#") && !strings.HasPrefix(key, ";") {
			settings[key] = expandBraces(value)
		}
	}
	return settings
}

var bracedName = regexp.MustCompile(`\$\{[^}]*\}`)

// expandBraces replaces ${NAME} by the environment's value, as npm does: a
// name that is not set stays as it is written.
func expandBraces(s string) string {
	return bracedName.ReplaceAllStringFunc(s, func(braced string) string {
		if value, set := os.LookupEnv(braced[2 : len(braced)-1]); set {
			return value
		}
		return braced
	})
}

func (conf npmConfig) get(key string) string {
	for _, settings := range conf {
		if v := settings[key]; v != "" {
			return v
		}
	}
	return ""
}

// registry returns the base URL of the registry that has a package, without a
// slash at its end: that of the package's scope, else the default one, else
// npm's own if npm is installed.
func (conf npmConfig) registry(ctx context.Context, name string) (string, error) {
	scope, _, scoped := strings.Cut(name, "/")
	found := ""
	if scoped {
		found = conf.get(scope + ":registry")
	}
	if found == "" {
		found = conf.get("registry")
	}
	if found == "" {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, "npm", "config", "get", "registry")
		cmd.Dir = os.TempDir() // no project's .npmrc
		cmd.WaitDelay = time.Second
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("%w: the npm configuration names no registry, and npm can't be asked (%v); NPM_CONFIG_REGISTRY can name one", ErrNoSource, err)
		}
		found = strings.TrimSpace(string(out))
	}
	u, err := url.Parse(found)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%w: the npm configuration's registry %q is not a URL", ErrNoSource, found)
	}
	return strings.TrimRight(found, "/"), nil
}

// auth returns the headers that the configuration has for a URL: npm keys them
// by the start of the URL without its scheme ("//host/path/:_authToken").
func (conf npmConfig) auth(rawURL string) http.Header {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil
	}
	for at := strings.TrimRight(u.Path, "/"); ; at = at[:strings.LastIndex(at, "/")] {
		for _, prefix := range []string{"//" + u.Host + at + "/", "//" + u.Host + at} {
			if token := conf.get(prefix + ":_authToken"); token != "" {
				return http.Header{"Authorization": {"Bearer " + token}}
			}
			if basic := conf.get(prefix + ":_auth"); basic != "" {
				return http.Header{"Authorization": {"Basic " + basic}}
			}
			user, password := conf.get(prefix+":username"), conf.get(prefix+":_password")
			if secret, err := base64.StdEncoding.DecodeString(password); user != "" && err == nil && password != "" {
				both := base64.StdEncoding.EncodeToString([]byte(user + ":" + string(secret)))
				return http.Header{"Authorization": {"Basic " + both}}
			}
		}
		if at == "" {
			return nil
		}
	}
}
