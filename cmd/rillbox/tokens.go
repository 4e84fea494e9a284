//go:build !windows

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"rillbox/deno/permission"
	"rillbox/server/web"
	"rillbox/supervisor/job"
)

// tokenName is the form of the name of a token, which is its client's identity. Those of
// ownNames mean others.
var (
	tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	ownNames  = []string{"token", "http"}
)

func isTokenName(name string) bool {
	return tokenName.MatchString(name) && !slices.Contains(ownNames, name)
}

// maxTokens is the size of the largest file of tokens, in bytes.
const maxTokens = 1 << 20

// tokens are those that requests over HTTP may have: the one of the setting auth_token,
// and those of a file, which is read again when it changes.
type tokens struct {
	set    *web.TokenSet
	config *config
	path   string   // empty where there is no file
	tools  []string // that there are
	log    *slog.Logger

	asked chan struct{} // to read the file again
	read  []byte        // what the file held when it was last read
	wrong string        // what is wrong with it, as it was last told
}

// openTokens reads the tokens.
func (a *app) openTokens(tools []string) (*tokens, error) {
	t := &tokens{set: &web.TokenSet{}, config: a.config, path: a.config.HTTP.Tokens, tools: tools, log: a.log, asked: make(chan struct{}, 1)}
	data, err := t.readFile()
	if err == nil {
		err = t.take(data)
	}
	return t, err
}

// take puts the tokens in a file's text in place of those that hold, or leaves these
// where something in the text is wrong.
func (t *tokens) take(data []byte) error {
	var all []web.Token
	if token := t.config.HTTP.Token; token != "" {
		all = append(all, web.Token{SHA256: sha256.Sum256([]byte(token)), Identity: web.Identity{Name: "token", Admin: true}})
	}
	if t.path != "" {
		listed, err := t.config.parseTokens(data, t.tools)
		if err != nil {
			return fmt.Errorf("%s: %w", t.path, err)
		}
		all = append(all, listed...)
	}
	t.read = data
	t.set.Replace(all)
	return nil
}

// readFile reads the file, which nobody else may read or change: who changes it may do
// all that its tokens may.
func (t *tokens) readFile() ([]byte, error) {
	if t.path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(t.path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO would wait
	if err != nil {
		return nil, fmt.Errorf("auth_tokens: %w", err)
	}
	defer file.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return nil, fmt.Errorf("auth_tokens: %s: %w", t.path, err)
	}
	others := uint32(0o077)
	if dir := os.Getenv("CREDENTIALS_DIRECTORY"); dir != "" && filepath.Dir(t.path) == filepath.Clean(dir) {
		others = 0o007 // systemd lets the service read it by an ACL, whose mask is where the group's mode is
	}
	switch {
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, fmt.Errorf("auth_tokens: %s is no file", t.path)
	case uint32(stat.Mode)&others != 0:
		return nil, fmt.Errorf("auth_tokens: others can use %s (its mode is %04o): run chmod 600 on it", t.path, stat.Mode&0o777)
	case stat.Uid != 0 && int(stat.Uid) != os.Geteuid():
		return nil, fmt.Errorf("auth_tokens: %s belongs to another user (%d), who could change it: run chown on it", t.path, stat.Uid)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxTokens+1))
	if err != nil {
		return nil, fmt.Errorf("auth_tokens: %w", err)
	}
	if len(data) > maxTokens {
		return nil, fmt.Errorf("auth_tokens: %s has more than %d bytes", t.path, maxTokens)
	}
	return data, nil
}

// ask has watch read the file again.
func (t *tokens) ask() {
	select {
	case t.asked <- struct{}{}:
	default: // it is about to
	}
}

// watch reads the file again when it may have changed, or when it is asked to, until ctx
// ends.
func (t *tokens) watch(ctx context.Context) {
	var events <-chan fsnotify.Event
	var lost <-chan error
	if t.path != "" {
		watcher, err := fsnotify.NewWatcher()
		if err == nil {
			defer watcher.Close()
			err = watcher.Add(filepath.Dir(t.path)) // the file may be replaced
			events, lost = watcher.Events, watcher.Errors
		}
		if err != nil {
			t.log.Warn("cannot watch the tokens file: send SIGHUP when it has changed", "err", err)
		}
	}
	var settled <-chan time.Time
	t.reload() // it may have changed before it was watched
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.asked:
			t.reload()
		case <-events: // also of a link that leads to it
			if settled == nil {
				settled = time.After(settleTime)
			}
		case <-lost:
			t.reload()
		case <-settled:
			settled = nil
			t.reload()
		}
	}
}

// reload takes what the file holds now. A wrong file changes nothing.
func (t *tokens) reload() {
	data, err := t.readFile()
	if err == nil && bytes.Equal(data, t.read) {
		t.wrong = ""
		return
	}
	if err == nil {
		err = t.take(data)
	}
	switch {
	case err == nil:
		t.wrong = ""
		t.log.Info("read the tokens again", "file", t.path)
	case err.Error() != t.wrong:
		t.wrong = err.Error()
		t.log.Error("the tokens stay as they were", "err", err)
	}
}

// parseTokens reads the text of a tokens file: a table for each.
func (c *config) parseTokens(data []byte, tools []string) (all []web.Token, err error) {
	tables := map[string]any{}
	if err := toml.Unmarshal(data, &tables); err != nil {
		if decode := (*toml.DecodeError)(nil); errors.As(err, &decode) {
			row, _ := decode.Position()
			if strings.Contains(err.Error(), " already ") {
				return nil, fmt.Errorf("line %d has a token or a key for the second time", row)
			}
			return nil, fmt.Errorf("line %d is no TOML", row) // what is there may be a secret
		}
		return nil, errors.New("it is no TOML")
	}
	if len(tables) == 0 {
		return nil, errors.New("it has no tokens: `rillbox token NAME` makes one")
	}
	var wrong []error
	byDigest := map[[sha256.Size]byte]string{}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		token, err := c.parseToken(name, tables[name], tools)
		if other, taken := byDigest[token.SHA256]; err == nil && taken {
			err = fmt.Errorf("it is the same token as %s", other)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("token %.80q: %w", name, err))
			continue
		}
		byDigest[token.SHA256] = name
		all = append(all, token)
	}
	return all, errors.Join(wrong...)
}

// parseToken reads the table of one token.
func (c *config) parseToken(name string, value any, tools []string) (token web.Token, err error) {
	table, isTable := value.(map[string]any)
	switch {
	case !isTable:
		return token, errors.New("want a table, [NAME], with sha256 and what it may do")
	case !isTokenName(name):
		return token, fmt.Errorf("it can't have this name: use up to 64 letters, digits, dashes and underscores, but not %s", strings.Join(ownNames, " or "))
	}
	identity := web.Identity{Name: name}
	terms := &identity.Terms
	digest := ""
	most, fetch := 1_000_000, true
	rows := map[string]pflag.Value{
		"sha256":      text(&digest),
		"admin":       boolean(&identity.Admin),
		"requests":    count(&identity.Requests, 0, most),
		"sessions":    count(&terms.Sessions, 0, most),
		"running":     count(&terms.Running, 0, most),
		"waiting":     count(&terms.Waiting, 0, most),
		"timeout":     duration(&terms.Timeout, 0),
		"allow_tools": &list{p: &identity.Tools.Allow},
		"deny_tools":  &list{p: &identity.Tools.Deny},

		"allow_packages":  &list{p: &terms.Policy.AllowPackages},
		"deny_packages":   &list{p: &terms.Policy.DenyPackages},
		"min_release_age": duration(&terms.Policy.MinReleaseAge, 0),
		"fetch_packages":  boolean(&fetch),
	}
	permissions := map[string]*permission.Permissions{}
	for _, kind := range engineKinds {
		permissions[kind.name] = &permission.Permissions{}
		rows[kind.name+"_permission_args"] = flags{permissions[kind.name]}
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		row, known := rows[key]
		if !known {
			return token, fmt.Errorf("unknown key %q%s", key, didYouMean(key, slices.Sorted(maps.Keys(rows))))
		}
		if err := setTOML(row, table[key]); err != nil {
			return token, fmt.Errorf("%s: %w", key, err)
		}
		if row.String() == "0" || row.String() == "0s" && key != "min_release_age" {
			return token, fmt.Errorf("%s: 0 would allow nothing: leave it out for as many as others may have", key)
		}
	}
	sum, err := hex.DecodeString(digest)
	if err != nil || len(sum) != sha256.Size {
		return token, errors.New("sha256: want the 64 hexadecimal digits that `rillbox token` prints")
	}
	token.SHA256 = [sha256.Size]byte(sum)
	if err := checkTools(identity.Tools, tools); err != nil {
		return token, fmt.Errorf("allow_tools and deny_tools: %w", err)
	}
	terms.Policy.CacheOnly = !fetch
	_, agrees := table["fetch_packages"]
	_, aged := table["min_release_age"]
	narrowed := c.Engine.Narrowed(terms.Policy)
	if err := narrowed.Validate(); err != nil {
		return token, fmt.Errorf("allow_packages and deny_packages: %w", err)
	}
	switch asked := terms.Policy.MinReleaseAge; {
	case agrees && fetch && narrowed.NoFetch:
		return token, errors.New("fetch_packages: the settings turned fetching off: a token can narrow them, not widen them; leave it out")
	case aged && asked < narrowed.MinReleaseAge:
		return token, fmt.Errorf("min_release_age: %v is less than the %v that hold for all: a token can narrow the settings, not widen them; ask for more, or leave it out", asked, narrowed.MinReleaseAge)
	}
	for _, kind := range engineKinds {
		key := kind.name + "_permission_args"
		if _, said := table[key]; !said {
			continue
		}
		words := append([]string{}, permissions[kind.name].Args()...) // not nil: it may be for none
		for _, word := range words {
			if strings.HasPrefix(word, "--allow-import") || strings.HasPrefix(word, "--deny-import") {
				return token, fmt.Errorf("%s: what imports may reach is the same for all: leave %s out", key, word)
			}
		}
		if _, err := c.Permissions[kind.name].Narrow(words); err != nil {
			return token, fmt.Errorf("%s: %w", key, err)
		}
		if terms.Permissions == nil {
			terms.Permissions = map[job.Language][]string{}
		}
		for _, language := range kind.languages {
			terms.Permissions[language.Name] = words
		}
	}
	token.Identity = identity
	return token, nil
}
