//go:build !windows

package hostile

import (
	"strings"
	"testing"

	"rillbox/cache/cachetest"
	"rillbox/cache/egress"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// sockets tries to reach the server at a host.
const sockets = `
import select, socket
def reach(host):
    print(socket.create_connection((host, %HTTPPORT%), 2).recv(1000))
`

var otherHost = []string{"--allow-net=example.com"}

func TestPythonNetwork(t *testing.T) {
	t.Parallel()
	tryTogether(t, []attack{
		{name: "pyfetch", code: "from pyodide.http import pyfetch\nprint(await (await pyfetch('http://%HTTP%/')).string())"},
		{name: "js.fetch", code: "import js\nprint(await (await js.fetch('http://%HTTP%/')).text())"},
		{name: "js.fetch of localhost", code: "import js\nawait js.fetch('http://localhost:%HTTPPORT%/')"},
		{name: "js.fetch of 0.0.0.0", code: "import js\nawait js.fetch('http://0.0.0.0:%HTTPPORT%/')"},
		{name: "js.fetch of an address as one number", code: "import js\nawait js.fetch('http://2130706433:%HTTPPORT%/')"},
		{name: "js.fetch of a short address", code: "import js\nawait js.fetch('http://127.1:%HTTPPORT%/')"},
		{name: "js.fetch of an octal address", code: "import js\nawait js.fetch('http://0177.0.0.1:%HTTPPORT%/')"},
		{name: "js.fetch of IPv4 in IPv6", code: "import js\nawait js.fetch('http://[::ffff:127.0.0.1]:%HTTPPORT%/')"},
		{name: "js.fetch by a proxy", code: runJS + `
await run_js("(url) => fetch('http://example.com/', { client: Deno.createHttpClient({ proxy: { url } }) })")("http://%HTTP%/")`},
		{name: "js.fetch by a proxy on a Unix socket", code: runJS + `
await run_js("(path) => fetch('http://localhost/', { client: Deno.createHttpClient({ proxy: { transport: 'unix', path } }) })")("%UNIX%")`},
		{name: "js.fetch by a Worker", code: worker + `print(await worker('postMessage(await (await fetch("http://%HTTP%/")).text())'))`},
		{name: "js.Request given to pyfetch", code: `
import js
from pyodide.http import pyfetch
await pyfetch(js.Request.new("http://%HTTP%/"))`},
		{name: "js.WebSocket", code: "import asyncio, js\njs.WebSocket.new('ws://%HTTP%/')\nawait asyncio.sleep(0.3)"},
		{name: "js.EventSource", code: "import asyncio, js\njs.EventSource.new('http://%HTTP%/')\nawait asyncio.sleep(0.3)"},
		{name: "Deno.connect", code: runJS + `await run_js("Deno.connect({ hostname: '127.0.0.1', port: %HTTPPORT% })")`},
		{name: "Deno.connectTls", code: runJS + `await run_js("Deno.connectTls({ hostname: '127.0.0.1', port: %HTTPPORT% })")`},
		{name: "Deno.connect to a Unix socket", code: runJS + `await run_js("Deno.connect({ transport: 'unix', path: '%UNIX%' })")`},
		{name: "node:net", code: runJS + `
await run_js("""async () => {
  const net = await import("node:net");
  await new Promise((resolve, reject) => net.connect(%HTTPPORT%, "127.0.0.1").on("connect", resolve).on("error", reject));
}""")()`},
		{name: "node:net to a Unix socket", code: runJS + `
await run_js("""async () => {
  const net = await import("node:net");
  await new Promise((resolve, reject) => net.connect("%UNIX%").on("connect", resolve).on("error", reject));
}""")()`},
		{name: "node:net to an abstract socket", linux: true, code: runJS + `
await run_js("""async () => {
  const net = await import("node:net");
  await new Promise((resolve, reject) => net.connect("\\0%ABSTRACT%").on("connect", resolve).on("error", reject));
}""")()`},
		{name: "node:http", code: runJS + `
await run_js("""async () => {
  const http = await import("node:http");
  await new Promise((resolve, reject) => http.get("http://%HTTP%/").on("response", resolve).on("error", reject));
}""")()`},
		{name: "node:http2", code: runJS + `
await run_js("""async () => {
  const http2 = await import("node:http2");
  await new Promise((resolve, reject) => http2.connect("http://%HTTP%/").on("connect", resolve).on("error", reject));
}""")()`},
		{name: "node:tls", code: runJS + `
await run_js("""async () => {
  const tls = await import("node:tls");
  await new Promise((resolve) => tls.connect(%HTTPPORT%, "127.0.0.1").on("error", resolve));
}""")()`},
		{name: "node:dgram", code: runJS + `
await run_js("""async () => {
  const dgram = await import("node:dgram");
  await new Promise((resolve, reject) => {
    setTimeout(reject, 3000, new Error("no answer")); // an error that nobody waits for is no end of a session
    dgram.createSocket("udp4").on("error", reject).send("x", %UDP%, "127.0.0.1", resolve);
  });
}""")()`},
		{name: "node:dns by a server of its own", code: runJS + `
await run_js("""async () => {
  const dns = await import("node:dns");
  const resolver = new dns.promises.Resolver({ timeout: 300, tries: 1 });
  resolver.setServers(["127.0.0.1:%UDP%"]);
  await resolver.resolve4("example.com");
}""")()`},
		{name: "Deno.resolveDns by a server of its own", code: runJS + `
await run_js("""Promise.race([new Promise((resolve) => setTimeout(resolve, 1000)),
  Deno.resolveDns("example.com", "A", { nameServer: { ipAddr: "127.0.0.1", port: %UDP% } })])""")`},
		{name: "socket by Node's", code: `
import pyodide_js, socket
await pyodide_js.useNodeSockFS()
print(socket.create_connection(("127.0.0.1", %HTTPPORT%), 2))`},
		{name: "http.client by Node's sockets", code: `
import http.client, pyodide_js
await pyodide_js.useNodeSockFS()
connection = http.client.HTTPConnection("127.0.0.1", %HTTPPORT%, timeout=2)
connection.request("GET", "/")
print(connection.getresponse().read())`},
		{name: "urllib by Node's sockets", code: `
import pyodide_js, urllib.request
await pyodide_js.useNodeSockFS()
print(urllib.request.urlopen("http://%HTTP%/", timeout=2).read())`},
		{name: "asyncio.open_connection by Node's sockets", waits: true, code: `
import asyncio, pyodide_js
await pyodide_js.useNodeSockFS()
await asyncio.open_connection("127.0.0.1", %HTTPPORT%)`},
		{name: "socket", code: sockets + `reach("127.0.0.1")`},
		{name: "socket to localhost", code: sockets + `reach("localhost")`},
		{name: "socket to 0.0.0.0", code: sockets + `reach("0.0.0.0")`},
		{name: "socket to no host", code: sockets + `reach("")`},
		{name: "socket to an address as one number", code: sockets + `reach("2130706433")`},
		{name: "socket to a short address", code: sockets + `reach("127.1")`},
		{name: "socket to IPv4 in IPv6", code: sockets + `reach("::ffff:127.0.0.1")`},
		{name: "socket to an address with a zone", code: sockets + `reach("127.0.0.1%x.example.com")`,
			noControl: "Deno finds nobody of that name, once it is granted"},
		{name: "socket that does not wait", code: sockets + `
s = socket.socket()
s.setblocking(False)
s.connect_ex(("127.0.0.1", %HTTPPORT%))
print(select.select([s], [], [], 2), s.recv(1000))`},
		{name: "C's socket, without Python's", code: `
import _socket
s = _socket.socket()
s.connect(("127.0.0.1", %HTTPPORT%))
print(s.recv(1000))`},
		{name: "http.client", code: `
import http.client
http.client.HTTPConnection("127.0.0.1", %HTTPPORT%, timeout=2).request("GET", "/")`},
		{name: "urllib", code: `import urllib.request; urllib.request.urlopen("http://%HTTP%/", timeout=2)`},
		{name: "asyncio.open_connection", code: `
import asyncio
reader, _ = await asyncio.open_connection("127.0.0.1", %HTTPPORT%)
print(await reader.read(1000))`},
		{name: "loop.sock_connect", code: `
import asyncio, socket
s = socket.socket()
s.setblocking(False)
await asyncio.get_running_loop().sock_connect(s, ("127.0.0.1", %HTTPPORT%))
print(await asyncio.get_running_loop().sock_recv(s, 1000))`},
		{name: "socket with another host granted", grants: otherHost, code: sockets + `reach("127.0.0.1")`},
		{name: "socket with another port granted", grants: []string{"--allow-net=127.0.0.1:9"}, code: sockets + `reach("127.0.0.1")`},
		{name: "socket with a name like the granted", grants: []string{"--allow-net=localhost.example.com"}, code: sockets + `reach("localhost")`},
		{name: "socket to what stands for a name", grants: otherHost, code: sockets + `
socket.gethostbyname("example.com")
reach(socket.gethostbyname("localhost"))`},
		{name: "socket to a granted name, whose address the program changes", grants: otherHost, code: sockets + `
import pyodide_js
from pyodide.code import run_js
run_js("(dns) => { dns.lookup_addr = () => '127.0.0.1'; }")(pyodide_js._module.DNS)
reach("example.com")`},
		{name: "urllib by a proxy, with another host granted", grants: otherHost, code: `
import urllib.request
urllib.request.build_opener(urllib.request.ProxyHandler({"http": "http://%HTTP%"})).open("http://example.com/", timeout=2)`},
		{name: "urllib's redirect from a granted host", grants: []string{"--allow-net=%REDIRECT%"}, prepare: redirect, code: `
import urllib.request
print(urllib.request.urlopen("http://%REDIRECT%/", timeout=2).read(), "%HTTP%"[:0])`},
		{name: "a server", code: `
import socket
print("it listens on", socket.create_server(("127.0.0.1", 0)).getsockname())`,
			noControl: "Python's sockets don't listen", evidence: printed("it listens on ")},
		{name: "open_url", code: `from pyodide.http import open_url; print(open_url("http://%HTTP%/").read())`,
			noControl: "Deno has no XMLHttpRequest, which open_url needs"},
		{name: "loadPackage over http", bare: true, code: `import pyodide_js; await pyodide_js.loadPackage("http://%HTTP%/evil-1.0-py3-none-any.whl")`},
		{name: "micropip over http", bare: true, code: `import micropip; await micropip.install("http://%HTTP%/evil-1.0-py3-none-any.whl")`},
		{name: "micropip of a requirement with a URL", bare: true, code: `import micropip; await micropip.install("evil @ http://%HTTP%/evil-1.0-py3-none-any.whl")`},
		{name: "micropip with an index of its own", bare: true, code: `import micropip; await micropip.install("evil", index_urls="http://%HTTP%/simple")`},
		{name: "micropip.set_index_urls", bare: true, code: `
import micropip
micropip.set_index_urls("http://%HTTP%/simple")
try:
    await micropip.install("evil")
finally:
    micropip.set_index_urls("http://127.0.0.1:1/simple")`},
		{name: "Deno.listen", code: runJS + `
listener = run_js("Deno.listen({ hostname: '127.0.0.1', port: 0 })")
print("it listens on", listener.addr.port)
listener.close()`, evidence: printed("it listens on ")},
		{name: "Deno.listen on a Unix socket", code: runJS + `run_js("Deno.listen({ transport: 'unix', path: '%DIR%/made' })")`},
		{name: "node:http server", waits: true, code: runJS + `
print(await run_js("""async () => {
  const http = await import("node:http");
  const server = http.createServer();
  await new Promise((resolve, reject) => server.on("error", reject).listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  server.close();
  return "node listens on " + port;
}""")())`, evidence: printed("node listens on ")},
		{name: "a cloud's metadata service", code: "import js\nprint('metadata:', (await js.fetch('http://169.254.169.254/latest/meta-data/')).status)",
			noControl: "there is none on this machine", evidence: printed("metadata:")},
		{name: "a private network", code: runJS + `print("private:", await run_js("Deno.connect({ hostname: '10.0.0.1', port: 80 }).then(String)"))`,
			noControl: "who answers there is not ours to say", evidence: printed("private:")},
	})
}

// requests and urllib3 reach what their process may reach.
func TestPythonNetworkByRequests(t *testing.T) {
	t.Parallel()
	code := `
import requests, urllib3
for get in requests.get, lambda url: urllib3.request("GET", url):
    try:
        print(get("http://%HTTP%/"))
    except Exception as error:
        print(type(error).__name__)`
	run := func(t *testing.T, engine job.Engine) (*scene, outcome) {
		s := newScene(t, attack{code: code})
		return s, runProgram(t.Context(), engine, job.Program{Language: job.Python, Packages: []string{"requests"}, Code: s.fillText(code)}, nil)
	}
	bothWays(t, job.Python, newEngine(t, job.Python, []string{"--allow-net"}, noWall), func(t *testing.T, engine job.Engine) {
		s, control := run(t, engine)
		if control.Error != nil && strings.Contains(control.Error.Message, "network is not reachable") {
			cachetest.NeedNetwork(t, egress.ErrOffline)
		}
		if found := s.evidenceOf(control); len(found) == 0 {
			t.Errorf("they do not get there with the permission either, so this shows nothing: %s", control.summary())
		}
	})
	bothWays(t, job.Python, newEngine(t, job.Python, nil, launcher.Best), func(t *testing.T, engine job.Engine) {
		s, o := run(t, engine)
		t.Logf("bounded: %s", o.summary())
		if found := s.evidenceOf(o); len(found) > 0 || o.Status != job.Completed {
			t.Errorf("the attack got through: %q, %s", found, o.summary())
		}
	})
}
