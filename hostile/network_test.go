//go:build !windows

package hostile

import (
	"net"
	"net/http"
	"testing"
)

func TestNetwork(t *testing.T) {
	t.Parallel()
	// prints what a stream of node:net gives
	const drain = `await new Promise((r) => s.on("data", (d) => console.log(d.toString())).on("end", r).on("close", r).on("error", (e) => { console.log(e.message); r(); }).on("connect", () => s.write("GET / HTTP/1.0\r\n\r\n")));`
	try(t, []attack{
		{name: "fetch of loopback", code: `console.log(await (await fetch("http://%HTTP%/")).text());`},
		{name: "fetch of localhost", code: `console.log(await (await fetch("http://localhost:%HTTPPORT%/")).text());`},
		{name: "fetch of 0.0.0.0", code: `console.log(await (await fetch("http://0.0.0.0:%HTTPPORT%/")).text());`},
		{name: "fetch of a short address", code: `console.log(await (await fetch("http://127.1:%HTTPPORT%/")).text());`},
		{name: "fetch of a decimal address", code: `console.log(await (await fetch("http://2130706433:%HTTPPORT%/")).text());`},
		{name: "fetch of an octal address", code: `console.log(await (await fetch("http://0177.0.0.1:%HTTPPORT%/")).text());`},
		{name: "fetch of a mapped address", code: `console.log(await (await fetch("http://[::ffff:127.0.0.1]:%HTTPPORT%/")).text());`},
		{name: "fetch with another host granted", grants: []string{"--allow-net=example.com"}, code: `console.log(await (await fetch("http://%HTTP%/")).text());`},
		{name: "fetch with another port granted", grants: []string{"--allow-net=127.0.0.1:9"}, code: `console.log(await (await fetch("http://%HTTP%/")).text());`},
		{name: "fetch with a name like the granted", grants: []string{"--allow-net=localhost.example.com"}, code: `console.log(await (await fetch("http://localhost:%HTTPPORT%/")).text());`},
		{name: "fetch with loopback denied", grants: []string{"--allow-net", "--deny-net=127.0.0.1"}, code: `console.log(await (await fetch("http://%HTTP%/")).text());`},
		{name: "fetch with user and password that look like the granted host", grants: []string{"--allow-net=example.com"}, code: `console.log(await (await fetch("http://example.com:80@%HTTP%/")).text());`,
			noControl: "Deno's fetch takes no user in a URL"},
		{name: "redirect from a granted host to loopback", grants: []string{"--allow-net=%REDIRECT%"}, prepare: redirect, code: `console.log(await (await fetch("http://%REDIRECT%/")).text(), "%HTTP%".length);`},
		{name: "node redirect from a granted host to loopback", waits: true, grants: []string{"--allow-net=%REDIRECT%"}, prepare: redirect,
			code: `import http from "node:http"; const get = (u) => new Promise((r, x) => http.get(u, async (m) => r(m.headers.location ? await get(m.headers.location) : (await m.toArray()).join(""))).on("error", x)); console.log(await get("http://%REDIRECT%/"), "%HTTP%".length); Deno.exit(0);`},
		{name: "proxy that is granted, to loopback", grants: []string{"--allow-net=example.com"}, code: `const client = Deno.createHttpClient({ proxy: { url: "http://%HTTP%" } }); console.log(await (await fetch("http://example.com/", { client })).text());`},
		{name: "proxy of the environment", spoils: true, grants: []string{"--allow-net=example.com", "--allow-env"}, control: []string{"--allow-net", "--allow-env"}, code: `Deno.env.set("HTTP_PROXY", "http://%HTTP%"); console.log(await (await fetch("http://example.com/")).text());`},
		{name: "proxy of the environment, in small letters, by node", spoils: true, grants: []string{"--allow-net=example.com", "--allow-env"}, control: []string{"--allow-net", "--allow-env"},
			code: `process.env.http_proxy = "http://%HTTP%"; process.env.ALL_PROXY = "http://%HTTP%"; const client = Deno.createHttpClient({}); console.log(await (await fetch("http://example.com/", { client })).text());`},
		{name: "proxy of the environment, with its name granted", spoils: true, grants: []string{"--allow-net=example.com", "--allow-env=HTTP_PROXY"}, control: []string{"--allow-net", "--allow-env"},
			code: `Deno.env.set("HTTP_PROXY", "http://%HTTP%"); console.log(await (await fetch("http://example.com/")).text());`},
		{name: "connect", code: `const c = await Deno.connect({ hostname: "127.0.0.1", port: %HTTPPORT% }); console.log("connected", "%HTTP%"); c.close();`},
		{name: "connectTls", code: `await Deno.connectTls({ hostname: "127.0.0.1", port: %HTTPPORT% }); console.log("%HTTP%");`},
		{name: "WebSocket", code: `const w = new WebSocket("ws://%HTTP%/"); await new Promise((r) => w.onopen = w.onerror = r);`},
		{name: "WebSocketStream", bareFlags: []string{"--unstable-net"}, code: `await new WebSocketStream("ws://%HTTP%/").opened.catch((e) => console.log(e.message));`},
		{name: "EventSource", code: `const e = new EventSource("http://%HTTP%/"); await new Promise((r) => e.onerror = e.onopen = r); e.close();`},
		{name: "WebTransport", bareFlags: []string{"--unstable-net"}, code: `try { const w = new WebTransport("https://127.0.0.1:%UDP%/"); await Promise.race([w.ready, new Promise((r) => setTimeout(r, 1000))]); } catch (e) { console.log(e.message); } Deno.exit(0);`},
		{name: "listenDatagram and send", bareFlags: []string{"--unstable-net"}, code: `const s = Deno.listenDatagram({ port: 0, transport: "udp", hostname: "127.0.0.1" }); await s.send(new Uint8Array(1), { transport: "udp", hostname: "127.0.0.1", port: %UDP% }); const [d] = await s.receive(); console.log(new TextDecoder().decode(d)); s.close();`},
		{name: "resolveDns at a server of its own", code: `await Promise.race([Deno.resolveDns("x.test", "A", { nameServer: { ipAddr: "127.0.0.1", port: %UDP% } }).catch((e) => console.log(e.message)), new Promise((r) => setTimeout(r, 500))]); Deno.exit(0);`},
		{name: "node dns at a server of its own", code: `import dns from "node:dns"; const r = new dns.Resolver(); r.setServers(["127.0.0.1:%UDP%"]); await Promise.race([new Promise((d) => r.resolve4("x.test", (e) => { console.log(e?.message); d(); })), new Promise((d) => setTimeout(d, 500))]); Deno.exit(0);`},
		{name: "node net", code: `import net from "node:net"; const s = net.connect(%HTTPPORT%, "127.0.0.1", () => console.log("%HTTP%")); ` + drain},
		{name: "node net with a lookup of its own", grants: []string{"--allow-net=example.com"}, code: `import net from "node:net"; const s = net.connect({ port: %HTTPPORT%, host: "example.com", lookup: (h, o, cb) => o.all ? cb(null, [{ address: "127.0.0.1", family: 4 }]) : cb(null, "127.0.0.1", 4) }, () => console.log("%HTTP%")); ` + drain},
		{name: "node http", code: `import http from "node:http"; await new Promise((r) => http.get("http://%HTTP%/", (m) => m.on("data", (d) => console.log(d.toString())).on("end", r)).on("error", (e) => { console.log(e.message); r(); }));`},
		{name: "node https", code: `import https from "node:https"; await new Promise((r) => https.get("https://%HTTP%/", r).on("error", (e) => { console.log(e.message); r(); }));`},
		{name: "node http2", code: `import http2 from "node:http2"; const c = http2.connect("http://%HTTP%"); await new Promise((r) => c.on("connect", r).on("error", r)); c.destroy();`},
		{name: "node tls", code: `import tls from "node:tls"; const s = tls.connect({ port: %HTTPPORT%, host: "127.0.0.1" }, () => console.log("%HTTP%")); ` + drain},
		{name: "node dgram", waits: true, code: `import dgram from "node:dgram"; const s = dgram.createSocket("udp4"); await new Promise((r) => { s.on("message", (m) => { console.log(m.toString()); r(); }); s.on("error", (e) => { console.log(e.message); r(); }); s.send("x", %UDP%, "127.0.0.1", (e) => { if (e) { console.log(e.message); r(); } }); }); s.close();`},
		{name: "import of a URL on loopback", bare: true, code: `await import("http://%HTTP%/x.js").catch((e) => console.log(e.message));`},
		{name: "import of a computed URL on loopback", bare: true, code: `await import(["http:", "", "%HTTP%", "x.js"].join("/")).catch((e) => console.log(e.message));`},
		{name: "import of a URL on loopback, with the network granted", grants: []string{"--allow-net"}, bare: true, code: `await import(["http:", "", "%HTTP%", "x.js"].join("/")).catch((e) => console.log(e.message));`},
		{name: "import of JSON on loopback", bare: true, code: `console.log(await import(["http:", "", "%HTTP%", "x.json"].join("/"), { with: { type: "json" } }).catch((e) => e.message));`},
		{name: "worker of a URL on loopback", bare: true, code: `const w = new Worker("http://%HTTP%/x.js", { type: "module" }); await new Promise((r) => w.onerror = (e) => { e.preventDefault(); console.log(e.message); r(); }); w.terminate();`},
		{name: "package wanted from loopback", packages: []string{"http://127.0.0.1:9/x.js"}, code: `import fs from "node:fs"; console.log(fs.readFileSync("%DIR%/secret.txt", "utf8"));`,
			noControl: "the request itself is refused, as its host is not one that imports may reach"},
		{name: "source map of a URL on loopback", code: `const f = new Function("throw new Error('x')\n//# sourceMappingURL=http://%HTTP%/x.map\n//# sourceURL=http://%HTTP%/x.js"); try { f(); } catch (e) { console.log(e.stack); }`,
			noControl: "Deno loads no source map by itself"},
		{name: "fetch of the cloud's metadata", code: `console.log("status", (await fetch("http://169.254.169.254/latest/meta-data/", { signal: AbortSignal.timeout(2000) })).status);`, evidence: says("status 2"),
			noControl: "the address is a cloud's"},
		{name: "connect to a private address", code: `await Promise.race([Deno.connect({ hostname: "10.0.0.1", port: 80 }).then(() => console.log("connected")), new Promise((r) => setTimeout(r, 1000))]);`, evidence: says("connected\n"),
			noControl: "the address is another network's"},
		{name: "connect to a Unix socket", code: `const c = await Deno.connect({ transport: "unix", path: "%UNIX%" }); const b = new Uint8Array(99); await c.read(b); console.log(new TextDecoder().decode(b));`},
		{name: "connect to a Unix socket with the network granted", grants: []string{"--allow-net"}, code: `const c = await Deno.connect({ transport: "unix", path: "%UNIX%" }); const b = new Uint8Array(99); await c.read(b); console.log(new TextDecoder().decode(b));`},
		{name: "connect to a Unix socket with the directory readable", grants: []string{"--allow-read=%DIR%"}, code: `const c = await Deno.connect({ transport: "unix", path: "%UNIX%" }); const b = new Uint8Array(99); await c.read(b); console.log(new TextDecoder().decode(b));`},
		{name: "node net to a Unix socket", code: `import net from "node:net"; const s = net.connect("%UNIX%"); ` + drain},
		{name: "node http to a Unix socket", code: `import http from "node:http"; await new Promise((r) => http.get({ socketPath: "%UNIX%", path: "/" }, r).on("error", (e) => { console.log(e.message); r(); }));`},
		{name: "fetch through a Unix socket", code: `const client = Deno.createHttpClient({ proxy: { transport: "unix", path: "%UNIX%" } }); await fetch("http://localhost/", { client }).catch((e) => console.log(e.message));`},
		{name: "node net to an abstract socket", linux: true, code: `import net from "node:net"; const s = net.connect("\0%ABSTRACT%"); ` + drain},
		{name: "node net to an abstract socket with the network granted", grants: []string{"--allow-net"}, linux: true, code: `import net from "node:net"; const s = net.connect("\0%ABSTRACT%"); ` + drain},
		{name: "connect to an abstract socket", linux: true, code: `const c = await Deno.connect({ transport: "unix", path: "\0%ABSTRACT%" }); const b = new Uint8Array(99); await c.read(b); console.log(new TextDecoder().decode(b));`},
		{name: "connect to an abstract socket with all files and the network granted", grants: []string{"--allow-net", "--allow-read", "--allow-write"}, linux: true,
			code: `import net from "node:net"; const s = net.connect("\0%ABSTRACT%"); ` + drain},
		{name: "connect by vsock", bareFlags: []string{"--unstable-vsock"}, code: `const c = await Deno.connect({ transport: "vsock", cid: 2, port: 22 }); console.log("connected");`, evidence: says("connected\n"),
			noControl: "it depends on the machine"},
		{name: "listen", code: `const l = Deno.listen({ hostname: "127.0.0.1", port: 0 }); console.log("listens", l.addr.port > 0); l.close();`, evidence: says("listens true")},
		{name: "listen with a host granted", grants: []string{"--allow-net=example.com"}, code: `const l = Deno.listen({ hostname: "127.0.0.1", port: 0 }); console.log("listens", l.addr.port > 0); l.close();`, evidence: says("listens true")},
		{name: "listenTls", code: `Deno.listenTls({ port: 0, cert: "x", key: "x" }); console.log("listens");`, evidence: says("listens\n"), noControl: "its certificate is refused first"},
		{name: "serve", code: `const s = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: (a) => console.log("listens", a.port) }, () => new Response()); await s.shutdown();`, evidence: says("listens ")},
		{name: "serve on a Unix socket", code: `const s = Deno.serve({ transport: "unix", path: "%DIR%/new-socket" }, () => new Response()); await new Promise((r) => setTimeout(r, 50)); console.log("serves"); await s.shutdown();`, evidence: says("serves\n")},
		{name: "listen on a Unix socket", code: `Deno.listen({ transport: "unix", path: "%DIR%/new-socket" }); console.log("listens"); Deno.exit(0);`, evidence: says("listens\n")},
		{name: "node net server", waits: true, code: `import net from "node:net"; const s = net.createServer().listen(0, "127.0.0.1"); await new Promise((r) => s.on("listening", () => { console.log("listens", s.address().port > 0); r(); }).on("error", (e) => { console.log(e.message); r(); })); s.close();`, evidence: says("listens true")},
		{name: "node http server", code: `import http from "node:http"; const s = http.createServer().listen(0); await new Promise((r) => s.on("listening", () => { console.log("listens", s.address().port > 0); r(); }).on("error", (e) => { console.log(e.message); r(); })); s.close();`, evidence: says("listens true")},
		{name: "node net server on a Unix socket", code: `import net from "node:net"; const s = net.createServer().listen("%DIR%/new-socket"); await new Promise((r) => s.on("listening", () => { console.log("listens"); r(); }).on("error", (e) => { console.log(e.message); r(); })); Deno.exit(0);`, evidence: says("listens\n")},
		{name: "node dgram bind", waits: true, code: `import dgram from "node:dgram"; const s = dgram.createSocket("udp4"); await new Promise((r) => s.on("listening", () => { console.log("listens", s.address().port > 0); r(); }).on("error", (e) => { console.log(e.message); r(); }).bind(0)); s.close();`, evidence: says("listens true")},
	})
}

// redirect serves a redirect to the scene's server, as a host that is granted.
func redirect(t *testing.T, s *scene) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+s.words["%HTTP%"]+"/", http.StatusFound)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	s.words["%REDIRECT%"] = listener.Addr().String()
}
