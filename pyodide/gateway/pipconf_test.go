package gateway

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPipIndexURLsFollowPipsRanks(t *testing.T) {
	const user = "[global]\nindex-url = https://user.example/simple/\n"
	tests := map[string]struct {
		user, venv, named string
		env               map[string]string
		want              []string
	}{
		"nothing configured":              {},
		"the user's file":                 {user: user, want: []string{"https://user.example/simple"}},
		"the virtual environment is next": {user: user, venv: "[global]\nindex_url: https://venv.example/simple", want: []string{"https://venv.example/simple"}},
		"a named file hides the user's":   {user: user, named: "[global]\n# none\n"},
		"the environment is first": {user: user, env: map[string]string{"PIP_INDEX_URL": "https://env.example/simple"},
			want: []string{"https://env.example/simple"}},
		"several extra ones": {user: user + "extra-index-url =\n    https://a.example/simple/\n    https://b.example/simple\n[list]\nindex-url = https://wrong.example\n",
			want: []string{"https://user.example/simple", "https://a.example/simple", "https://b.example/simple"}},
		"the command's section wins": {user: user + "[install]\nindex-url = https://install.example/simple\n", want: []string{"https://install.example/simple"}},
		"no index at all":            {user: user + "no-index = yes\n"},
		"files switched off":         {user: user, env: map[string]string{"PIP_CONFIG_FILE": os.DevNull}},
		"a user and a password":      {env: map[string]string{"PIP_INDEX_URL": "https://me:secret@corp.example/simple"}, want: []string{"https://me:secret@corp.example/simple"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			home := cleanPip(t)
			put(t, filepath.Join(home, ".config/pip/pip.conf"), test.user)
			put(t, filepath.Join(home, "venv/pip.conf"), test.venv)
			if test.venv != "" {
				t.Setenv("VIRTUAL_ENV", filepath.Join(home, "venv"))
			}
			if test.named != "" {
				put(t, filepath.Join(home, "named.conf"), test.named)
				t.Setenv("PIP_CONFIG_FILE", filepath.Join(home, "named.conf"))
			}
			for k, v := range test.env {
				t.Setenv(k, v)
			}
			got, err := PipIndexURLs()
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestABadIndexURLIsRefusedWithoutItsPassword(t *testing.T) {
	for _, bad := range []string{"ftp://me:secret@host/simple", "https://me:secret@host:port/", "nonsense"} {
		cleanPip(t)
		t.Setenv("PIP_INDEX_URL", bad)
		if urls, err := PipIndexURLs(); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %q, %v", bad, urls, err)
		}
	}
}

// cleanPip hides the machine's own pip configuration, as far as the
// environment moves it, and returns an empty home.
func cleanPip(t *testing.T) string {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "PIP_CONFIG_FILE", "VIRTUAL_ENV", "XDG_CONFIG_HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv("XDG_CONFIG_DIRS", home)
	return home
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if text == "" {
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
