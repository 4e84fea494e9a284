package pyodide

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"rillbox/cache"
	"rillbox/cache/egress"
	"rillbox/pyodide/gateway"
)

// micropipWheel is the name of micropip's wheel.
const micropipWheel = "micropip-" + MicropipVersion + "-py3-none-any.whl"

// micropipHashes are the sha256 of micropip's wheel: Pyodide builds its own for
// the CDN, and the package index has the one that micropip's authors published.
// They hold the same code. Tests have others.
var micropipHashes = []string{
	"e2d52886594fd4cd0d0847110a1c34ae0134d3a970eb4496d3b5eb31ee2d8af6",
	"768de165adb8e66906039d8fec4127a57f522dfdf8e6fbff877a4616941ecfd3",
}

// pipTimeout bounds one run of pip.
const pipTimeout = 60 * time.Second

// fetchMicropip puts micropip's wheel into dir: from the mirror or Pyodide's CDN, else from
// the package indexes of pip's configuration, else from wherever pip itself
// looks when it is not configured.
func (o LocateOptions) fetchMicropip(ctx context.Context, dir string) error {
	resolving, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	from, err := o.mirror(micropipWheel)
	if err != nil {
		return err
	}
	if len(from) == 0 {
		from = append(from, cache.Origin{Name: "Pyodide's CDN", Fetch: func(ctx context.Context, to string, progress func(done, total int64)) error {
			return o.downloadWheel(ctx, DefaultCDN+micropipWheel, to, progress)
		}})
	}
	fetch := from[0].Fetch
	from[0].Fetch = func(ctx context.Context, to string, progress func(done, total int64)) error {
		err := fetch(ctx, to, progress)
		var dns *net.DNSError
		if errors.As(err, &dns) && dns.IsTimeout {
			giveUp(fmt.Errorf("names are not resolved: %w", egress.ErrOffline))
		}
		return err
	}
	indexes, err := gateway.PipIndexURLs()
	if err != nil {
		return err
	}
	for _, index := range indexes {
		from = append(from, cache.Origin{Name: "the package index", Fetch: func(ctx context.Context, to string, progress func(done, total int64)) error {
			wheel, err := o.findWheel(ctx, index, to)
			if err != nil {
				return err
			}
			return o.downloadWheel(ctx, wheel, to, progress)
		}})
	}
	if len(indexes) == 0 {
		from = append(from, cache.Origin{Name: "pip", Fetch: func(ctx context.Context, to string, _ func(done, total int64)) error {
			// pip's own time-out does not bound name resolution.
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			defer context.AfterFunc(resolving, func() { cancel(context.Cause(resolving)) })()
			err := pipDownload(ctx, to)
			if err != nil && ctx.Err() == nil && !egress.IsOffline(err) && !errors.Is(err, cache.ErrNoSource) {
				err = pipDownload(ctx, to)
			}
			return err
		}})
	}
	return o.Cache.Fetch(ctx, cache.Pinned{
		Name:  "micropip " + MicropipVersion,
		Files: map[string][]string{micropipWheel: micropipHashes},
		From:  from,
	}, dir, o.Progress)
}

func (o LocateOptions) downloadWheel(ctx context.Context, url, to string, progress func(done, total int64)) error {
	src := egress.Source{URL: url, MaxBytes: maxWheel}
	return o.Cache.Download(ctx, src, filepath.Join(to, micropipWheel), progress)
}

// findWheel looks for the wheel's URL on micropip's page of a package index, in
// its JSON form (PEP 691) or its HTML form (PEP 503).
func (o LocateOptions) findWheel(ctx context.Context, index, dir string) (string, error) {
	page := dir + ".page"
	defer os.Remove(page)
	src := egress.Source{
		URL: index + "/micropip/", MaxBytes: 16 << 20,
		Header: http.Header{"Accept": {"application/vnd.pypi.simple.v1+json, text/html;q=0.2"}},
	}
	if err := o.Cache.Download(ctx, src, page, nil); err != nil {
		return "", err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return "", err
	}
	base, err := url.Parse(src.URL)
	if err != nil {
		return "", err
	}
	for _, m := range wheelLink.FindAllSubmatch(text, -1) {
		u, err := base.Parse(html.UnescapeString(string(m[1])))
		if err != nil || path.Base(u.Path) != micropipWheel {
			continue
		}
		if u.Host == base.Host && u.User == nil {
			u.User = base.User
		}
		return u.String(), nil
	}
	return "", fmt.Errorf("%s does not list %s", base.Redacted(), micropipWheel)
}

// wheelLink finds what a page says of where a file is, in either form, up to the
// fragment.
var wheelLink = regexp.MustCompile(`(?i)(?:<a\s[^>]*?href\s*=|"url"\s*:)\s*["']([^"'#]+)`)

// pipDownload has pip fetch the wheel into dir. pip itself is not to try again:
// its pauses would keep a machine without a network waiting.
func pipDownload(ctx context.Context, dir string) error {
	python, err := exec.LookPath("python3")
	if err != nil {
		return fmt.Errorf("%w: pip's configuration names no package index, and there is no python3 to run pip with; PIP_INDEX_URL can name one", cache.ErrNoSource)
	}
	ctx, cancel := context.WithTimeout(ctx, pipTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-m", "pip", "download", "--quiet", "--no-input",
		"--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--python-version", "3.14",
		"--retries", "0", "--timeout", "3", "--dest", dir, "micropip=="+MicropipVersion)
	cmd.Dir = os.TempDir()
	// python3 may be a script that starts another: end all of them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("pip: %w", context.Cause(ctx))
	}
	output := strings.TrimSpace(string(out))
	if strings.Contains(output, "No module named pip") {
		return fmt.Errorf("%w: pip's configuration names no package index, and python3 has no pip; PIP_INDEX_URL can name one", cache.ErrNoSource)
	}
	if unreachable.MatchString(output) {
		return fmt.Errorf("pip: %w", egress.ErrOffline)
	}
	if len(output) > 600 {
		output = "…" + output[len(output)-600:]
	}
	return fmt.Errorf("pip download failed (%w): %s", err, output)
}

// unreachable is what pip says when it can't connect; that it then finds no
// version is only what follows.
var unreachable = regexp.MustCompile(`NewConnectionError|ConnectTimeoutError|Failed to establish a new connection|NameResolutionError|Network is unreachable`)
