//go:build !windows

package hostile

import (
	"slices"
	"strings"
	"testing"

	"rillbox/cache/egress"
	"rillbox/pyodide"
	"rillbox/supervisor/job"
)

// ownGateway gives a guest the URL of its own grant.
const ownGateway = `
import js
from micropip import package_index
base = package_index.PYPI_URL.removesuffix("simple")
origin = js.URL.new(base).origin
async def get(url, **options):
    response = await js.fetch(url, js.Object.fromEntries(js.Object.entries(js.JSON.parse(json.dumps(options)))))
    return f"{response.status} {(await response.text())[:2000]}"
import json
`

// raw sends bytes to the gateway, whose address the guest may reach.
const raw = ownGateway + `
from pyodide.code import run_js
raw = run_js("""async (address, text) => {
  const connection = await Deno.connect({ hostname: address.hostname, port: Number(address.port) });
  await connection.write(new TextEncoder().encode(text));
  const buffer = new Uint8Array(4096);
  const size = await connection.read(buffer);
  connection.close();
  return new TextDecoder().decode(buffer.subarray(0, size ?? 0));
}""")
address = js.URL.new(base)
token = address.pathname.strip("/")
`

// The gateway is the one thing on the network that a guest reaches. The gateway
// is the boundary here, so that there is none without; that the requests reach
// it is shown by their answers, which each row tells the start of.
func TestPythonGateway(t *testing.T) {
	t.Parallel()
	wheels := newIndex(t)
	secret := newSecret()
	wheels.put("harmless", zipOf(t, wheelFiles("harmless", "text = 'harmless'")...))
	wheels.put("denied", zipOf(t, wheelFiles("denied", "text = '"+secret+"'")...))
	engine := pythonEngine(t, func(o *pyodide.Options) {
		o.IndexURL, o.Policy = wheels.url(), egress.Policy{Deny: []string{"denied"}}
	})
	byURL := func(url string) string {
		return ownGateway + `print(await get(base + "url/" + js.encodeURIComponent("` + url + `")))`
	}
	request := func(head string) string {
		return raw + `print(await raw(address, ` + head + `.replace("\n", "\r\n") + "\r\n\r\n"))`
	}
	rows := []struct {
		name, code string
		answer     string // what the answer starts with, one of several; empty: there is none
	}{
		{"a harmless page", ownGateway + `print(await get(base + "simple/harmless/"))`, "200 "},
		{"a harmless page by hand", request(`f"GET /{token}/simple/harmless/ HTTP/1.1\nHost: {address.host}\nConnection: close"`), "HTTP/1.1 200"},
		{"the root", ownGateway + `print(await get(origin + "/"))`, "404"},
		{"Python's own sockets", raw + `import socket; print(socket.create_connection((address.hostname, int(address.port)), 2))`, ""},
		{"no token", ownGateway + `print(await get(origin + "/simple/harmless/"))`, "404"},
		{"another token", ownGateway + `print(await get(origin + "/" + "A" * 43 + "/simple/harmless/"))`, "404"},
		{"the start of its token", raw + `print(await get(origin + "/" + token[:-1] + "/simple/harmless/"))`, "404"},
		{"a debugging path", ownGateway + `print(await get(origin + "/debug/pprof/"), await get(base + "debug/vars"))`, "404"},
		{"a path that climbs", raw + `print(await raw(address, f"GET /{token}/../../etc/passwd HTTP/1.1\r\nHost: {address.host}\r\n\r\n"))`, "HTTP/1.1 404"},
		{"a path that climbs, escaped", ownGateway + `print(await get(base + "file/..%2f..%2f..%2fetc%2fpasswd"))`, "404"},
		{"a file of the cache by its digest", ownGateway + `print(await get(base + "file/" + "0" * 64 + "/harmless-1.0-py3-none-any.whl"))`, "404"},
		{"a file of the CDN that no lock file names", ownGateway + `print(await get(base + "cdn/..%2f..%2fsecret"))`, "404"},
		{"the index's other pages", ownGateway + `print(await get(base + "simple/..%2f..%2fsecret/"))`, "404"},
		{"a denied package", ownGateway + `print(await get(base + "simple/denied/"))`, "403 the operator denied"},
		{"a denied package in other letters", ownGateway + `print(await get(base + "simple/DENIED/"))`, "403 the operator denied"},
		{"a URL on loopback", byURL("https://%HTTP%/evil-1.0-py3-none-any.whl"), "403"},
		{"a URL on loopback by name", byURL("https://localhost:%HTTPPORT%/evil-1.0-py3-none-any.whl"), "403"},
		{"a URL on loopback in IPv6", byURL("https://[::ffff:127.0.0.1]:%HTTPPORT%/evil-1.0-py3-none-any.whl"), "403"},
		{"a URL on loopback as one number", byURL("https://2130706433:%HTTPPORT%/evil-1.0-py3-none-any.whl"), "504|403"},
		{"a URL on 0.0.0.0", byURL("https://0.0.0.0:%HTTPPORT%/evil-1.0-py3-none-any.whl"), "403"},
		{"a URL over http", byURL("http://%HTTP%/evil-1.0-py3-none-any.whl"), "403"},
		{"a file: URL", byURL("file://%DIR%/secret.txt"), "403"},
		{"a file: URL of a wheel", byURL("file://%DIR%/evil-1.0-py3-none-any.whl"), "403"},
		{"a URL of a cloud's metadata", byURL("https://169.254.169.254/evil-1.0-py3-none-any.whl"), "403"},
		{"a URL on a private network", byURL("https://10.0.0.1/evil-1.0-py3-none-any.whl"), "403"},
		{"a URL of the operator's index", byURL(strings.Replace(wheels.url(), "http:", "https:", 1) + "/denied/denied-1.0-py3-none-any.whl"), "403"},
		{"a URL with a password", byURL("https://user:password@example.com/evil-1.0-py3-none-any.whl"), "403"},
		{"micropip of a URL over http", `import micropip; await micropip.install("http://%HTTP%/evil-1.0-py3-none-any.whl")`, ""},
		{"micropip of a URL on loopback", `import micropip; await micropip.install("https://%HTTP%/evil-1.0-py3-none-any.whl")`, ""},
		{"micropip with an index of its own", `import micropip; await micropip.install("evil", index_urls="http://%HTTP%/simple")`, ""},
		{"POST", ownGateway + `print(await get(base + "simple/harmless/", method="POST", body="x"))`, "405"},
		{"PUT of a file", ownGateway + `print(await get(base + "file/" + "0" * 64 + "/x", method="PUT", body="x"))`, "405"},
		{"DELETE", ownGateway + `print(await get(base + "simple/harmless/", method="DELETE"))`, "405"},
		{"another Host", request(`f"GET /{token}/simple/harmless/ HTTP/1.1\nHost: evil.example"`), "HTTP/1.1 421"},
		{"a proxy's request", request(`f"GET http://%HTTP%/ HTTP/1.1\nHost: %HTTP%"`), "HTTP/1.1 421"},
		{"a proxy's request in its own name", request(`f"GET http://%HTTP%/ HTTP/1.1\nHost: {address.host}"`), "HTTP/1.1 421"},
		{"CONNECT", request(`f"CONNECT %HTTP% HTTP/1.1\nHost: %HTTP%"`), "HTTP/1.1 405"},
		{"js.fetch with the gateway as proxy", ownGateway + `
from pyodide.code import run_js
print(await run_js("async (url) => (await fetch('http://%HTTP%/', { client: Deno.createHttpClient({ proxy: { url } }) })).status")(origin))`, ""},
		{"a smuggled request", request(`f"GET /{token}/simple/harmless/ HTTP/1.1\nHost: {address.host}\nContent-Length: 5\nTransfer-Encoding: chunked"`), "HTTP/1.1 400"},
		{"an upgrade", request(`f"GET /{token}/simple/harmless/ HTTP/1.1\nHost: {address.host}\nConnection: Upgrade\nUpgrade: websocket"`), "HTTP/1.1 400"},
		{"a line that breaks the gateway's own requests", ownGateway + `print(await get(base + "simple/harmless%0d%0aX:%20y/"))`, "404"},
		{"the gateway's port, to serve others", ownGateway + `
from pyodide.code import run_js
print(run_js("(port) => String(Deno.listen({ hostname: '127.0.0.1', port }))")(int(js.URL.new(base).port)))`, ""},
	}
	attacks := make([]attack, len(rows))
	answers := map[string]string{}
	for i, row := range rows {
		attacks[i] = attack{name: row.name, code: row.code}
		answers[row.name] = row.answer
	}
	bothWays(t, job.Python, engine, func(t *testing.T, engine job.Engine) {
		runTogether(t, attacks, attack.granted, func(_ []string, p job.Program) outcome {
			return runProgram(t.Context(), engine, p, nil)
		}, func(a attack, s *scene, whole, own outcome) {
			t.Run(a.name, func(t *testing.T) {
				t.Logf("bounded: %s", own.summary())
				if found := s.evidenceOf(whole); len(found) > 0 || strings.Contains(whole.text(), secret) || strings.Contains(whole.text(), "root:") {
					t.Errorf("the attack got through: %q, %s", found, own.summary())
				}
				answer, ending, ranToItsEnd := strings.Cut(own.Stdout.String(), "\x1e")
				if want := answers[a.name]; want == "" {
					if answer != "" || ranToItsEnd && strings.HasSuffix(ending, "'no error'") {
						t.Errorf("it was not refused: %s", own.summary())
					}
				} else if !slices.ContainsFunc(strings.Split(want, "|"), func(start string) bool { return strings.HasPrefix(answer, start) }) {
					t.Errorf("the answer does not start with %q: %s", want, own.summary())
				}
			})
		})
	})
}

// The path of a run's own is none for any other, and leads nowhere once the run
// has ended. The control is its use by its owner.
func TestPythonGatewayPathDiesWithItsRun(t *testing.T) {
	t.Parallel()
	wheels := newIndex(t)
	wheels.put("harmless", zipOf(t, wheelFiles("harmless", "")...))
	engine := pythonEngine(t, func(o *pyodide.Options) { o.IndexURL = wheels.url(); o.Warm = 1 })
	run := func(code string, args ...string) outcome {
		o := runProgram(t.Context(), engine, job.Program{Language: job.Python, Code: code, Args: args}, nil)
		if o.err != nil || o.Status != job.Completed {
			t.Fatal(o.summary())
		}
		return o
	}
	const use = ownGateway + `
import sys
print((await get((sys.argv[1] if len(sys.argv) > 1 else base) + "simple/harmless/"))[:3])
base`
	owner := run(use)
	if owner.Stdout.String() != "200\n" {
		t.Fatalf("its owner can't use it: %s", owner.summary())
	}
	leaked := strings.Trim(string(owner.Value), `"`)
	other := run(use, leaked)
	if other.Stdout.String() != "404\n" || string(other.Value) == string(owner.Value) {
		t.Errorf("another run got %q with the path of one that has ended; its own is %s", other.Stdout.String(), other.Value)
	}
}
