package permission

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"rillbox/cache/cachetest"
	"rillbox/deno/binary"
)

// manyFlags is the variable that says with how many random flags
// TestFlagsAreDenosOwn goes to Deno; scripts/fuzz sets it to 10000.
const manyFlags = "RILLBOX_TEST_FLAGS"

// TestFlagsAreDenosOwn compares with the real Deno, by its command line: of
// random flags it takes what we take, refuses what we refuse and gives the same
// reason; and what it grants to a narrowed child, it grants to one with the
// operator's flags.
func TestFlagsAreDenosOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Deno many times")
	}
	binary, err := binary.Locate(t.Context(), binary.LocateOptions{Cache: cachetest.Open(t)})
	if err != nil {
		t.Fatal(err)
	}
	many := 1000
	if text := os.Getenv(manyFlags); text != "" {
		if many, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	real := newRealFlags(t, binary)
	seed := uint64(1) // the same flags each time, but where many are asked for
	if os.Getenv(manyFlags) != "" {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	var mu sync.Mutex
	counts := map[string]int{}
	count := func(what string, n int) int {
		mu.Lock()
		defer mu.Unlock()
		counts[what] += n
		if what != "starts" {
			counts["flags"] += n
		}
		return counts["flags"]
	}
	var workers sync.WaitGroup
	for worker := range 2 {
		workers.Go(func() {
			r := flagSource{rand.New(rand.NewPCG(seed, uint64(worker)))}
			for count("narrowed", 0) < many && !t.Failed() {
				real.tryFlags(t, r, count)
			}
		})
	}
	workers.Wait()
	t.Logf("%v", counts)
	for _, what := range []string{"granted", "narrowed", "not granted", "refused"} {
		if counts[what] == 0 {
			t.Errorf("no flag was %s", what)
		}
	}
}

// tryFlags makes flags for an operator and for a run, and compares.
func (f realFlags) tryFlags(t *testing.T, r flagSource, count func(string, int) int) {
	var granted, asked, refused []string
	for range 2 + r.IntN(16) {
		granted = append(granted, r.word(r.IntN(3) > 0))
	}
	granted, refused = taken(granted, refused)
	operator, err := Parse(granted)
	if err != nil {
		t.Errorf("%q are taken one by one and not together: %v", granted, err)
		return
	}
	for range 60 {
		word := r.word(true)
		if _, err := Parse([]string{word}); err != nil {
			if r.IntN(4) == 0 { // each costs a start
				refused = append(refused, word)
			}
		} else if _, err := operator.Narrow([]string{word}); err == nil {
			asked = append(asked, word)
		} else {
			count("not granted", 1)
		}
	}
	run, err := operator.Narrow(append([]string{}, asked...))
	if err != nil {
		t.Errorf("%q takes %q one by one and not together: %v", granted, asked, err)
		return
	}
	count("granted", len(granted))
	count("narrowed", len(asked))
	probes := probesFor(append(operator.Args(), run.Args()...))
	all, some := f.query(t, withoutAll(granted), probes), f.query(t, run.Args(), probes)
	ours := f.query(t, operator.Args(), probes)
	count("starts", 3+len(refused))
	for i, probe := range probes {
		if i >= min(len(all), len(some), len(ours)) {
			break
		}
		if some[i] > ours[i] {
			t.Errorf("the operator granted %q, a run narrowed it to %q and got %v (%d instead of %d)", operator.Args(), run.Args(), probe, some[i], ours[i])
		}
		if ours[i] > all[i] {
			t.Errorf("the operator granted %q, which became %q and grants %v (%d instead of %d)", granted, operator.Args(), probe, ours[i], all[i])
		}
	}
	for _, word := range refused {
		name, list, _ := strings.Cut(word, "=")
		for value := range strings.SplitSeq(list, ",") {
			f.checkRefused(t, name+"="+value)
			count("refused", 1)
		}
	}
}

// checkRefused compares reasons, where we refuse a flag.
func (f realFlags) checkRefused(t *testing.T, flag string) {
	_, err := Parse([]string{flag})
	if err == nil {
		return // of a list, it is another value that is refused
	}
	_, stderr := f.start(t, []string{flag}, nil)
	reason := strings.TrimPrefix(strings.SplitN(stderr, "\n", 2)[0], "error: ")
	switch {
	case !strings.HasPrefix(stderr, "error: "):
		t.Errorf("we refuse %q (%v), Deno takes it: %s", flag, err, stderr)
	case !strings.Contains(err.Error(), reason) && !strings.HasSuffix(flag, "="): // of nothing we say that it is nothing
		t.Errorf("%q: Deno's reason is %q, ours %v", flag, reason, err)
	}
}

// taken are the words that we take.
func taken(words, refused []string) (ours, others []string) {
	for _, word := range words {
		if _, err := Parse([]string{word}); err != nil {
			refused = append(refused, word)
		} else {
			ours = append(ours, word)
		}
	}
	return ours, refused
}

// withoutAll keeps of flags what Deno takes together: with --allow-all no other
// allow flag.
func withoutAll(words []string) []string {
	if !slices.Contains(words, "--allow-all") {
		return words
	}
	return slices.DeleteFunc(slices.Clone(words), func(word string) bool {
		return strings.HasPrefix(word, "--allow-") && word != "--allow-all"
	})
}

// realFlags starts Deno with flags.
type realFlags struct{ deno, dir string }

func newRealFlags(t *testing.T, deno string) realFlags {
	f := realFlags{deno, t.TempDir()}
	const ask = `console.log(JSON.stringify(JSON.parse(Deno.args[0] ?? "[]").map((q) => { const { state, partial } = Deno.permissions.querySync(q); return state !== "granted" ? 0 : partial ? 1 : 2; })));`
	if err := os.WriteFile(filepath.Join(f.dir, "ask.js"), []byte(ask), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f realFlags) start(t *testing.T, flags []string, args []string) (stdout, stderr string) {
	words := slices.Concat([]string{"run", "--quiet", "--no-config", "--no-lock", "--no-prompt", "--no-code-cache"}, flags, []string{filepath.Join(f.dir, "ask.js")}, args)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), f.deno, words...)
	cmd.Env = []string{"DENO_DIR=" + f.dir, "NO_COLOR=1", "PATH=/usr/bin:/bin"}
	cmd.Dir = f.dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // what it says tells
	return out.String(), errs.String()
}

// query gives for each probe whether it is granted: 2, in part: 1, or not.
func (f realFlags) query(t *testing.T, flags []string, probes []map[string]string) (granted []int) {
	text, err := json.Marshal(probes)
	if err != nil {
		t.Error(err)
	}
	stdout, stderr := f.start(t, flags, []string{string(text)})
	if json.Unmarshal([]byte(stdout), &granted) != nil || len(granted) != len(probes) {
		t.Errorf("we take %q, Deno does not: %s", flags, stderr)
	}
	return granted
}

// probesFor are what flags are asked about: what they name, and what is near.
func probesFor(flags []string) (probes []map[string]string) {
	fields := map[string]string{"read": "path", "write": "path", "ffi": "path", "net": "host", "import": "host", "env": "variable", "sys": "kind", "run": "command"}
	probes = []map[string]string{{"name": "net"}}
	asked := map[string]bool{}
	add := func(kind string, values ...string) {
		for _, value := range values {
			if key := kind + "\x00" + value; !asked[key] {
				asked[key] = true
				probe := map[string]string{"name": kind}
				if value != "" {
					probe[fields[kind]] = value
				}
				probes = append(probes, probe)
			}
		}
	}
	for _, flag := range flags {
		name, list, valued := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		_, kind, _ := strings.Cut(name, "-")
		if kind == "all" {
			continue
		}
		add(kind, "")
		if !valued {
			continue
		}
		for value := range strings.SplitSeq(list, ",") {
			switch fields[kind] {
			case "path":
				add(kind, value, filepath.Join(value, "x"), filepath.Dir(value))
			case "host":
				for _, name := range namesOf(mustHost(value)) {
					add(kind, name)
				}
			case "variable":
				value = strings.TrimSuffix(value, "*")
				if value != "" && !strings.Contains(value, "=") {
					add(kind, value)
				}
				add(kind, strings.ReplaceAll(value, "=", "")+"X")
			case "command":
				add(kind, value, "/usr/bin/"+filepath.Base(value))
			default:
				add(kind, value)
			}
		}
	}
	return probes
}

// namesOf are hosts as a guest names them: in h, and near.
func namesOf(h host) (names []string) {
	ports := []string{"", ":80", ":443"}
	switch h.kind {
	case domainHost, domainsHost:
		names = []string{h.name, "x." + h.name}
		if _, above, ok := strings.Cut(h.name, "."); ok {
			names = append(names, above)
		}
	case addressHost, networkHost:
		at := func(a netip.Addr) {
			if h := addressOf(a); a.IsValid() {
				names = append(names, h.String())
			}
		}
		first := h.net.Masked().Addr()
		at(first)
		at(first.Next())
		at(first.Prev())
		if first.Is4() {
			names = append(names, "[::ffff:"+first.String()+"]")
		}
	default:
		return []string{h.String()}
	}
	if h.port != anyPort {
		ports = append(ports, fmt.Sprintf(":%d", h.port))
	}
	bare := names
	names = nil
	for _, name := range bare {
		for _, port := range ports {
			names = append(names, name+port)
		}
	}
	return names
}

// flagSource makes flags that have much in common.
type flagSource struct{ *rand.Rand }

func (r flagSource) one(of ...string) string { return of[r.IntN(len(of))] }

// word is a flag; allowing ones only, if allows is set.
func (r flagSource) word(allows bool) string {
	if r.IntN(40) == 0 {
		return "--allow-all"
	}
	var names []string
	for name := range permissionFlags {
		if !allows || isAllow(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	name := r.one(names...)
	if r.IntN(2) == 0 {
		name = r.one("allow-net", "allow-net", "allow-import")
		if !allows && r.IntN(2) == 0 {
			name = "deny-net"
		}
	}
	if r.IntN(6) == 0 {
		return "--" + name
	}
	values := make([]string, 1+r.IntN(2))
	for i := range values {
		values[i] = r.value(permissionFlags[name])
	}
	return "--" + name + "=" + strings.Join(values, ",")
}

func (r flagSource) value(kind valueKind) string {
	switch kind {
	case hostValue:
		return r.host()
	case pathValue:
		return r.one("/", "/a", "/a/b", "/a/b/c", "/a/b/", "/a/../b", "/ab", "/b", "/a/./b", "//a", "/b/c/d", "/ü", "/a b")
	case envValue:
		return r.one("A", "AB", "ABC", "A*", "AB*", "*", "B", "a", "A=", "=", "Ä", "A**", "A*B", "B*")
	case sysValue:
		return r.one(append([]string{"umask", "ca", "x", "Hostname", "uid ", "inspector"}, sysNames...)...)
	default:
		return r.one("ls", "cat", "/bin/ls", "/usr/bin/ls", "/usr/bin", "LS", "nothere", "/usr/bin/l*", "*", "l*", "/usr/bin/../bin/cat", "ls.x")
	}
}

func (r flagSource) host() string {
	name := r.one("a.b", "x.a.b", "*.a.b", "*.x.a.b", "A.B", "a.b.", "*.b", "*.", "*", "localhost", "a_b", "-", "a..b", ".a", "ü.b", "a b", "",
		"127.0.0.1", "127.0.0.2", "127.0.0.1.", "127.1", "0", "0.0.0.0", "010.0.0.1", "0x7f.1", "2130706433", "10.1.2.3", "999.1.1.1", "1.2.3.4.5",
		"10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/8", "010.001.0.0/016", "127.0.0.0/8", "0.0.0.0/0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0/8", "/8",
		"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:0.0.0.0]", "[FE80::1]", "[::1", "[::g]", "[127.0.0.1]", "::1", "[::1]x", "[::01.2.3.4]", "[1:2:3:4:5:6:7::]", "[::]/0",
		"vsock:2", "vsock:-1", "vsock:+1:2", "vsock:x:y", "unix:/a", "unix:/a/../b", "unix:a", "unix:", "unix:///a", "http://a.b", "a://b", "http:", strings.Repeat("a", 256)+".b")
	if r.IntN(4) == 0 {
		zone := r.one("%", "%x", "%lo", "%x.a.b", "%25", "%.")
		if at := strings.IndexByte(name, ']'); at >= 0 {
			name = name[:at] + zone + name[at:]
		} else {
			name += zone
		}
	}
	return name + r.one("", "", "", ":80", ":80", ":443", ":080", ":+80", ":", ":65536", ":-1", ":x", ":80:1")
}

// TestDeniedLoopbackIsNotReached has a server on both addresses of loopback, and
// a guest that may reach every host but one of loopback's.
func TestDeniedLoopbackIsNotReached(t *testing.T) {
	binary, err := binary.Locate(t.Context(), binary.LocateOptions{Cache: cachetest.Open(t)})
	if err != nil {
		t.Fatal(err)
	}
	var reached atomic.Int64
	v4, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(v4.Addr().(*net.TCPAddr).Port)
	listeners := []net.Listener{v4}
	if v6, err := net.Listen("tcp6", "[::1]:"+port); err == nil { // where there is IPv6
		listeners = append(listeners, v6)
	}
	for _, listener := range listeners {
		server := &http.Server{Handler: http.NotFoundHandler(), ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				reached.Add(1)
			}
		}}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(func() { _ = server.Close() })
	}
	real := newRealFlags(t, binary)
	const guest = `
		import net from "node:net";
		addEventListener("error", (e) => e.preventDefault()); // a localAddress that is denied ends a program otherwise
		addEventListener("unhandledrejection", (e) => e.preventDefault());
		const port = Number(Deno.args[0]);
		const names = ["127.0.0.1", "127.1", "127.0.0.1%x", "127.0.0.1%lo", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "0", "0x0", "00", "0.0", "0.0.0.0",
			"localhost", "LOCALHOST", "localhost.", "ip6-localhost", Deno.hostname(), "①②⑦.0.0.1",
			"::1", "::", "::%lo", "::1%1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:0.0.0.0", "::ffff:0:0", "[::ffff:0.0.0.0]", "[::1%1]", "[::%x]"];
		const soon = (p) => Promise.race([p, new Promise((r) => setTimeout(r, 500))]).catch(() => {});
		await Promise.all(names.map(async (hostname) => {
			const inURL = hostname.includes(":") && hostname[0] != "[" ? "[" + hostname + "]" : hostname;
			await soon((async () => (await Deno.connect({ hostname, port })).close())());
			await soon((async () => (await Deno.connectTls({ hostname, port })).close())());
			await soon((async () => (await fetch("http://" + inURL + ":" + port + "/")).text())());
			await soon(new Promise((r, x) => { const s = net.connect(port, hostname); s.on("connect", () => { s.destroy(); r(); }).on("error", x); }));
			await soon(new Promise((r, x) => { const s = net.connect({ port, host: hostname, localAddress: "127.0.0.1" }); s.on("connect", () => { s.destroy(); r(); }).on("error", x); }));
			await soon((async () => { const w = new WebSocket("ws://" + inURL + ":" + port + "/"); await new Promise((r) => w.onopen = w.onerror = r); })());
		}));
		console.log("tried");
		Deno.exit(0);`
	if err := os.WriteFile(filepath.Join(real.dir, "ask.js"), []byte(guest), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, denied := range []string{"", "127.0.0.1", "127.0.0.0/8", "127.0.0.1:" + port, "[::1]", "[::ffff:127.0.0.1]", "localhost", "127.0.0.1%x", "0.0.0.0/0"} {
		words := []string{"--allow-net", "--allow-sys=hostname"}
		if denied != "" {
			words = append(words, "--deny-net="+denied)
		}
		p, err := Parse(words)
		if err != nil {
			t.Fatal(err)
		}
		reached.Store(0)
		stdout, stderr := real.start(t, p.Args(), []string{port})
		if stdout != "tried\n" {
			t.Fatalf("the guest with %q ended: %s", words, stderr)
		}
		if n := reached.Load(); (n == 0) != (denied != "") {
			t.Errorf("%q: %d connections came", words, n)
		}
	}
}
