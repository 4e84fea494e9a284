package modules

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"rillbox/cache/egress"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
	"rillbox/supervisor/sandbox"
	"rillbox/workspace"
)

// PackageError says why the packages of a program can't be had.
type PackageError struct {
	Text  string
	cause error
}

func (e *PackageError) Error() string { return e.Text }

// Unwrap gives egress.ErrOffline where the network was missing.
func (e *PackageError) Unwrap() error { return e.cause }

// EndedError says that a fetching process was ended from outside.
type EndedError struct{ Exit sandbox.Exit }

func (e EndedError) Error() string { return "fetch packages: " + e.Exit.Reason }

// fetcher makes one plan. It starts Deno processes that fetch modules into the cache:
// they see specifiers and never a guest's code; lifecycle scripts do not run.
type fetcher struct {
	*Planner
	Policy  egress.Policy // the operator's, which may be narrowed
	deno    string        // its path
	imports []string      // permission flags for URL imports
	named   []string      // hosts that may be on private addresses
	roots   []Specifier
	npmOnly bool // no URL and no jsr: specifier leads anywhere
	terms   Terms
	locked  lockFile        // what of the project's lock file is the roots'
	fetched map[string]bool // addresses, and npm packages with their versions
	emit    func(job.Event)

	work  string // a directory for the lock file
	stage string // DENO_DIR, with links to what is in the cache
}

func NewFetcher(pl *Planner, deno string, p permission.Permissions, policy egress.Policy, roots []Specifier, emit func(job.Event)) *fetcher {
	_, hosts := p.Allowed("import")
	return &fetcher{
		Planner: pl, Policy: policy, deno: deno, roots: roots, fetched: map[string]bool{}, emit: emit,
		imports: p.Imports().Args(),
		named:   namedHosts(slices.Concat(pl.AllowImport, hosts)),
		npmOnly: !slices.ContainsFunc(roots, func(s Specifier) bool { return s.Scheme != "npm" }),
	}
}

// fetchLimits bound a fetching process; it runs no guest's code.
func fetchLimits() job.Limits {
	l := job.DefaultLimits()
	l.Memory, l.FileBytes = 4<<30, 4<<30
	return l
}

// MaxUnpacked is how much the packages of one installation may hold: a small archive
// can unpack to any size. The largest known to us, with all that they need, have a
// quarter of it.
const MaxUnpacked = 4 << 30

// outgrown says whether the stage holds more than it may.
func (f *fetcher) outgrown() bool {
	held, err := workspace.Measure(f.stage, "", math.MaxInt32)
	return err == nil && held.Bytes > f.Unpacked // else it was just removed
}

// watchStage calls over once the stage has outgrown its bound. Looking takes little of
// the time of an installation that has many files.
func (f *fetcher) watchStage(ctx context.Context, over func()) {
	for wait := 200 * time.Millisecond; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		start := time.Now()
		if f.outgrown() {
			over()
			return
		}
		wait = max(wait, 20*time.Since(start))
	}
}

// offline says that only the cache may be asked.
func (f *fetcher) offline() bool { return f.Cache.Offline() || f.Policy.NoFetch }

// run runs a command of Deno's for the roots, and gives its stdout.
func (f *fetcher) run(ctx context.Context, command []string, roots ...Specifier) ([]byte, error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	around := permission.Ours(f.Walls)
	address := deadEnd
	var network *proxy
	if !f.offline() {
		network = newProxy(f.Policy, f.named, stop)
		network.registryFirst = f.npmOnly
		defer network.close()
		var err error
		if address, err = network.reachable(around); err != nil {
			return nil, err
		}
	}
	home, err := sandbox.NewRunDir()
	if err != nil {
		return nil, err
	}
	env, files := fetchEnv(address)
	if f.terms.Overrides != nil { // which only package.json can have
		env = slices.DeleteFunc(env, func(setting string) bool { return strings.HasPrefix(setting, "DENO_NO_PACKAGE_JSON=") })
	}
	for _, file := range append(files, launcher.Certificates...) {
		around.Optional(file)
	}
	around.See(f.Cache.DenoDir(), f.Cache.DenoDir(), launcher.Read) // what the stage's links lead to
	for _, path := range []string{f.stage, home, f.work} {
		around.See(path, path, launcher.Read|launcher.Write)
	}
	child, err := sandbox.Start(sandbox.Command{
		Path: around.See(f.deno, permission.BinaryName, launcher.Read|launcher.Execute),
		Args: append(command, texts(roots)...),
		Env:  append(env, "DENO_DIR="+f.stage),
		Dir:  home,
		Wall: around.Wall(),
	}, fetchLimits())
	if err == nil && network != nil {
		err = network.serve(child)
	}
	if err != nil {
		return nil, err
	}
	var stdout, stderr, partial bytes.Buffer
	var fetching []string
	var mu sync.Mutex
	child.Attach(running, func(e job.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind == job.Stdout {
			stdout.Write(e.Data)
			return
		}
		partial.Write(e.Data)
		for {
			text, err := partial.ReadString('\n')
			if err != nil {
				partial.WriteString(text)
				return
			}
			address, isDownload := strings.CutPrefix(strings.TrimSpace(text), "Download ")
			if !isDownload {
				stderr.WriteString(text)
				continue
			}
			fetching = append(fetching, address)
			stage, what := downloadStage(address)
			f.fetched[what] = true
			f.emit(job.Event{Kind: job.Stage, Text: stage})
		}
	})
	_ = child.Stdin().Close()
	go f.watchStage(running, stop)
	exit := child.Wait()
	stop()
	var fault *connectError
	if network != nil {
		fault = network.close()
	}
	if len(fetching) > 0 && f.outgrown() {
		return nil, &PackageError{Text: fmt.Sprintf("%s can't be installed: with what it needs it unpacks to more than the %d MiB that an installation may have", requestOf("", roots), f.Unpacked>>20)}
	}
	switch {
	case exit.Status == job.Completed:
		return stdout.Bytes(), nil
	case exit.Status == job.OutOfMemory && len(fetching) > 0: // nothing of a guest's ran there
		address := fetching[len(fetching)-1]
		return nil, &PackageError{Text: fmt.Sprintf("%s can't be fetched: what the registry sends takes more memory to read than the %d MiB that there are (%s)",
			requestOf(address, roots), fetchLimits().Memory>>20, hostname(address))}
	case fault != nil && ctx.Err() == nil:
		return nil, f.explainFault(fault, stderr.String()+partial.String(), urlOn(fetching, fault.host), roots)
	case exit.Status != job.Failed || exit.Reason != "":
		return nil, EndedError{exit}
	}
	return nil, f.explain(stderr.String()+partial.String(), "", roots)
}

// urlOn finds, among those being fetched, a URL on the host.
func urlOn(addresses []string, host string) string {
	for _, address := range slices.Backward(addresses) {
		if u, err := url.Parse(address); err == nil && egress.HostPort(u) == host {
			return address
		}
	}
	return host
}

// deadEnd is a proxy address where nothing listens.
const deadEnd = "http://127.0.0.1:9"

// fetchEnv is what of our environment a fetching process needs: which registries
// the machine uses and whom it trusts; proxy is how the process reaches them.
// files are those that the environment names.
func fetchEnv(proxy string) (env, files []string) {
	env = []string{"NO_COLOR=1", "DENO_NO_UPDATE_CHECK=1", "DENO_NO_PACKAGE_JSON=1"}
	names := []string{"HOME", "JSR_URL", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"}
	env = append(env, "HTTP_PROXY="+proxy, "HTTPS_PROXY="+proxy, "NO_PROXY=")
	if home, err := os.UserHomeDir(); err == nil {
		npmrc := filepath.Join(home, ".npmrc")
		files = append(files, npmrc)
		text, _ := os.ReadFile(npmrc)
		for _, match := range bracedName().FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
	}
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
			if filepath.IsAbs(value) && name != "HOME" {
				files = append(files, value)
			}
		}
	}
	for _, setting := range os.Environ() {
		name, _, _ := strings.Cut(strings.ToLower(setting), "=")
		if strings.HasPrefix(name, "npm_config_") && !strings.Contains(name, "proxy") {
			env = append(env, setting)
		}
	}
	env = append(env, "DENO_TLS_CA_STORE="+cmp.Or(os.Getenv("DENO_TLS_CA_STORE"), "mozilla,system"))
	if cert := cmp.Or(os.Getenv("DENO_CERT"), os.Getenv("SSL_CERT_FILE")); cert != "" {
		env = append(env, "DENO_CERT="+cert)
		files = append(files, cert)
	}
	return env, files
}

var bracedName = Pattern(`\$\{([A-Za-z_][A-Za-z0-9_]*)\??\}`)

// What Deno says of what went wrong.
var (
	errorLine     = Pattern(`(?m)^error: `)
	failedPackage = Pattern(`Failed (?:loading \S+ for|caching npm) package ["']([^"']+)["']`)
	failedJSR     = Pattern(`JSR package manifest for '([^']+)' failed`)
	otherArchive  = Pattern(`Tarball checksum did not match [^\n]* for (\S+?)\.?\s+Expected: (\S+)\s+Actual: (\S+)`)
	failedImport  = Pattern(`Import '([^']+)' failed|Specifier not found in cache: "([^"]+)"`)
	localFault    = Pattern(`Failed (?:caching|reading cache entry for) '|\(os error (\d+)\)`)
	noNetwork     = Pattern(`error sending request|dns error|client error \(Connect\)|tcp connect error|not found in cache`)
)

// explanations are our messages for Deno's; the first that matches is used. %[1] is a
// name and %[2] a version, as Deno gives them; %[3] suggests another name; %[4] is the
// minimum release age.
var explanations = []struct {
	told func() *regexp.Regexp
	say  string
}{
	{Pattern(`npm package '([^']+)' does not exist`),
		"the npm package %[1]q does not exist: check its name%[3]s"},
	{Pattern(`Could not find npm package '([^']+)' matching '([^']+)'(?s:.*)(?i:minimum dependency (?:age|date))`),
		"the npm package %[1]q has no version that matches %[2]q and is older than %[4]s, the minimum release age: ask for an older one, or have the operator lower min_release_age"},
	{Pattern(`Could not find npm package '([^']+)' matching '(?:\*|latest)'`),
		"the npm package %[1]q does not exist, or has no release: check its name%[3]s"},
	{Pattern(`Could not find npm package '([^']+)' matching '([^']+)'`),
		"the npm package %[1]q has no version that matches %[2]q: ask for another, or for none to get the latest"},
	{Pattern(`JSR package not found: (\S+)`),
		"the JSR package %[1]q does not exist: check its name"},
	{Pattern(`Could not find version of '([^']+)' that matches specified version constraint '([^']+)'`),
		"the JSR package %[1]q has no version that matches %[2]q: ask for another, or for none to get the latest"},
	{Pattern(`Requires import access to "([^"]+)"`), notImportable},
	{Pattern(`Module not found "([^"]+)"`), "%[1]s does not exist: check the URL"},
}

// explainFault turns a connection that was not made, for address, into an error.
func (f *fetcher) explainFault(fault *connectError, stderr, address string, roots []Specifier) error {
	var private *egress.PrivateError
	var denied *egress.DeniedError
	var tooMuch *egress.TooLargeError
	switch {
	case errors.As(fault, &tooMuch):
		return &PackageError{Text: fmt.Sprintf("%s can't be fetched from %s: %v", requestOf(address, roots), fault.host, tooMuch)}
	case errors.As(fault, &denied):
		return &PackageError{Text: fmt.Sprintf("%s: %v", requestOf(address, roots), denied)}
	case errors.As(fault, &private):
		return &PackageError{Text: fmt.Sprintf("%s is not fetched from: %v; the operator can name the host in allow_import", fault.host, private)}
	}
	f.Log.Warn("packages can't be fetched", "host", fault.host, "error", fault.err)
	return f.explain(stderr, address, roots)
}

// MaxExplained is how many bytes of Deno's message are kept.
const MaxExplained = 4 << 10

// explain turns what Deno printed last, when it was started for the roots, into an error.
// unreachable is a URL whose host could not be reached.
func (f *fetcher) explain(stderr, unreachable string, roots []Specifier) error {
	text := stderr
	if at := errorLine().FindStringIndex(text); at != nil {
		text = text[at[1]:]
	}
	text, _, _ = strings.Cut(text, "\nStack backtrace")
	text = strings.ToValidUTF8(strings.TrimSpace(text), "\ufffd")
	if len(text) > MaxExplained {
		text = strings.ToValidUTF8(text[:MaxExplained], "") + "…"
	}
	if m := otherArchive().FindStringSubmatch(text); m != nil && f.terms.Lock.File != "" {
		return mismatch(f.terms.Lock.File, m[1], m[2], m[3])
	}
	if unreachable != "" || f.offline() || noNetwork().MatchString(text) {
		what := wanted(text)
		if what == "" {
			what = requestOf(unreachable, roots)
		}
		if f.Policy.NoFetch {
			return &PackageError{Text: what + " is not in the cache, and the operator turned fetching off"}
		}
		missing := egress.NotCached(what)
		return &PackageError{missing.Error(), missing}
	}
	for _, e := range explanations {
		if m := e.told().FindStringSubmatch(text); m != nil {
			return &PackageError{Text: fmt.Sprintf(e.say, m[1], m[len(m)-1], nearName(m[1]), f.minAge())}
		}
	}
	if isLocal(text) {
		return fmt.Errorf("fetch packages: %s", text)
	}
	return &PackageError{Text: "the packages can't be fetched: " + text}
}

// isLocal says that Deno tells of this machine's fault, such as a full disk: it gives
// the system's number, or names a file of its cache.
func isLocal(text string) bool {
	for _, m := range localFault().FindAllStringSubmatch(text, -1) {
		number, err := strconv.Atoi(m[1])
		if err != nil || slices.Contains(localErrors, syscall.Errno(number)) {
			return true
		}
	}
	return false
}

var localErrors = []syscall.Errno{
	syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.EACCES, syscall.EPERM,
}

// minAge is the minimum release age in force.
func (f *fetcher) minAge() string {
	if f.Policy.MinReleaseAge > 0 {
		return f.Policy.MinReleaseAge.String()
	}
	return fmt.Sprintf("%gh", DefaultAge.Hours())
}

// wanted names what Deno failed to get.
func wanted(text string) string {
	for _, failed := range []struct {
		told   func() *regexp.Regexp
		scheme string
	}{{failedPackage, "npm:"}, {failedJSR, "jsr:"}, {failedImport, ""}} {
		if m := failed.told().FindStringSubmatch(text); m != nil {
			return failed.scheme + strings.Join(m[1:], "")
		}
	}
	return ""
}

// requestOf finds the root that made Deno ask for an address; else it is the first.
func requestOf(address string, roots []Specifier) string {
	path, err := url.PathUnescape(address)
	if err != nil {
		path = address
	}
	i := slices.IndexFunc(roots, func(s Specifier) bool { return strings.Contains(path, s.Name) })
	return roots[max(i, 0)].String()
}
