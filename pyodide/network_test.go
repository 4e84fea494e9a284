//go:build !windows

package pyodide

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rillbox/supervisor/job"
)

// site answers by HTTP and by HTTPS, for which it has an authority of its own.
type site struct {
	plain, secure string // host:port
	authority     string // its certificate, in PEM
}

func newSite(t *testing.T) site {
	t.Helper()
	done := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/who", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RemoteAddr) })
	mux.Handle("/redirect", http.RedirectHandler("/who", http.StatusFound))
	mux.HandleFunc("/count", func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, n)
	})
	mux.HandleFunc("/zeros", func(w http.ResponseWriter, r *http.Request) {
		part := make([]byte, 1<<16)
		for range 200 << 20 / len(part) {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	})
	next := make(chan struct{}, 1) // a line may follow
	mux.HandleFunc("/lines", func(w http.ResponseWriter, r *http.Request) {
		for i := range 3 {
			if i > 0 {
				<-next
			}
			_, _ = fmt.Fprintf(w, "line %d\n", i)
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("/next", func(http.ResponseWriter, *http.Request) { next <- struct{}{} })
	mux.HandleFunc("/cut", func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
		if secure, ok := conn.(*tls.Conn); ok {
			conn = secure.NetConn() // without TLS's own end
		}
		_ = conn.Close()
	})
	mux.HandleFunc("/never", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-done:
		}
	})
	quiet := log.New(io.Discard, "", 0) // of handshakes that are to fail
	plain, secure := httptest.NewUnstartedServer(mux), httptest.NewUnstartedServer(mux)
	plain.Config.ErrorLog, secure.Config.ErrorLog = quiet, quiet
	certificate, authority := certificates(t)
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	plain.Start()
	secure.StartTLS()
	t.Cleanup(func() {
		close(done)
		plain.Close()
		secure.Close()
	})
	return site{plain.Listener.Addr().String(), secure.Listener.Addr().String(), authority}
}

// certificates makes a server's certificate, for 127.0.0.1, and its authority's.
func certificates(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	var signer *x509.Certificate
	var signerKey *ecdsa.PrivateKey
	var chain [][]byte
	for _, name := range []string{"a test's authority", "a test's server"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(int64(len(chain)) + 1), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
			BasicConstraintsValid: true, IsCA: signer == nil, KeyUsage: x509.KeyUsageDigitalSignature,
		}
		if signer == nil {
			signer, signerKey, template.KeyUsage = template, key, x509.KeyUsageCertSign
		} else {
			template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		}
		der, err := x509.CreateCertificate(rand.Reader, template, signer, key.Public(), signerKey)
		if err != nil {
			t.Fatal(err)
		}
		chain, signerKey = append(chain, der), key
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: chain[0]})
	return tls.Certificate{Certificate: chain[1:], PrivateKey: signerKey}, string(authority)
}

// clients are ways to fetch: get, which follows redirects, and lines, which calls
// told with each line of a body as it comes.
var clients = []struct {
	name, code                     string
	packages                       []string
	late, refused, unknown, forged string // the names of errors
	keeps                          bool   // a connection for what is asked next
}{
	{name: "socket and ssl", late: "TimeoutError", refused: "ConnectionRefusedError", unknown: "gaierror", forged: "SSLCertVerificationError", code: `
import socket
def connected(url, timeout, trust):
    parts = urlsplit(url)
    s = socket.create_connection((parts.hostname, parts.port), timeout)
    if parts.scheme == "https":
        s = (context if trust else ssl.create_default_context()).wrap_socket(s, server_hostname=parts.hostname)
    return s, parts.path
async def get(url, data=None, timeout=5, trust=True):
    s, path = connected(url.replace("/redirect", "/who"), timeout, trust)
    with s:
        s.sendall(b"POST %b HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(data or b"")))
        s.sendall(data or b"")
        parts = []
        while part := s.recv(100000):
            parts.append(part)
    return b"".join(parts).partition(b"\r\n\r\n")[2]
async def lines(url, told):
    s, path = connected(url, 5, True)
    with s, s.makefile("rb") as f:
        s.sendall(b"GET %b HTTP/1.0\r\n\r\n" % path.encode())
        for line in f:
            if line.startswith(b"line"): await told(line)`},
	{name: "http.client", late: "TimeoutError", refused: "ConnectionRefusedError", unknown: "gaierror", forged: "SSLCertVerificationError", keeps: true, code: `
import http.client
kept = {}
def connection(url, timeout, trust):
    parts = urlsplit(url)
    if parts.scheme == "http": return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
    return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout, context=context if trust else None)
async def get(url, data=None, timeout=5, trust=True):
    base, _, path = url.replace("/redirect", "/who").rpartition("/")
    key = base, timeout, trust
    if key not in kept: kept[key] = connection(base, timeout, trust)
    kept[key].request("POST" if data else "GET", "/" + path, data)
    return kept[key].getresponse().read()
async def lines(url, told):
    c = connection(url, 5, True)
    c.request("GET", "/lines")
    with c.getresponse() as r:
        for line in r: await told(line)`},
	{name: "urllib", late: "TimeoutError", refused: "URLError", unknown: "URLError", forged: "URLError", code: `
import urllib.request
async def get(url, data=None, timeout=5, trust=True):
    with urllib.request.urlopen(url, data, timeout, context=context if trust else None) as r:
        return r.read()
async def lines(url, told):
    with urllib.request.urlopen(url, context=context) as r:
        for line in r: await told(line)`},
	{name: "urllib3", packages: []string{"urllib3"}, late: "ReadTimeoutError", refused: "NewConnectionError", unknown: "NameResolutionError", forged: "SSLError", keeps: true, code: `
import urllib3
pools = [urllib3.PoolManager(), urllib3.PoolManager(ca_certs="/tmp/authority.pem")]
async def get(url, data=None, timeout=5, trust=True):
    return pools[trust].request("POST" if data else "GET", url, body=data, timeout=timeout, retries=urllib3.Retry(False) if "redirect" not in url else None).data
async def lines(url, told):
    r = pools[1].request("GET", url, preload_content=False)
    for line in r: await told(line)
    r.release_conn()`},
	{name: "requests", packages: []string{"requests"}, late: "ReadTimeout", refused: "ConnectionError", unknown: "ConnectionError", forged: "SSLError", keeps: true, code: `
import requests
session = requests.Session()
async def get(url, data=None, timeout=5, trust=True):
    return session.request("POST" if data else "GET", url, data=data, timeout=timeout, verify="/tmp/authority.pem" if trust else True).content
async def lines(url, told):
    with session.get(url, stream=True, verify="/tmp/authority.pem") as r:
        for line in r.iter_lines(chunk_size=1): await told(line)`},
	{name: "httpx", packages: []string{"httpx"}, late: "ReadTimeout", refused: "ConnectError", unknown: "ConnectError", forged: "ConnectError", keeps: true, code: `
import httpx
sessions = [httpx.Client(follow_redirects=True), httpx.Client(verify=context, follow_redirects=True)]
async def get(url, data=None, timeout=5, trust=True):
    return sessions[trust].request("POST" if data else "GET", url, content=data, timeout=timeout).content
async def lines(url, told):
    with sessions[1].stream("GET", url) as r:
        for line in r.iter_lines(): await told(line)`},
	{name: "httpx, async", packages: []string{"httpx"}, late: "ReadTimeout", refused: "ConnectError", unknown: "ConnectError", forged: "ConnectError", keeps: true, code: `
import httpx
sessions = [httpx.AsyncClient(follow_redirects=True), httpx.AsyncClient(verify=context, follow_redirects=True)]
async def get(url, data=None, timeout=5, trust=True):
    return (await sessions[trust].request("POST" if data else "GET", url, content=data, timeout=timeout)).content
async def lines(url, told):
    async with sessions[1].stream("GET", url) as r:
        async for line in r.aiter_lines(): await told(line)`},
	{name: "aiohttp", packages: []string{"aiohttp"}, late: "TimeoutError", refused: "ClientConnectorError", unknown: "ClientConnectorError", forged: "ClientConnectorCertificateError", keeps: true, code: `
import aiohttp
session = aiohttp.ClientSession()
async def get(url, data=None, timeout=5, trust=True):
    async with session.request("POST" if data else "GET", url, data=data, timeout=aiohttp.ClientTimeout(total=timeout), ssl=context if trust else True) as r:
        return await r.read()
async def lines(url, told):
    async with session.get(url, ssl=context) as r:
        async for line in r.content: await told(line)`},
	{name: "asyncio's streams", late: "TimeoutError", refused: "ConnectionRefusedError", unknown: "gaierror", forged: "SSLCertVerificationError", code: `
import asyncio
async def opened(url, trust=True):
    parts = urlsplit(url.replace("/redirect", "/who"))
    return *await asyncio.open_connection(parts.hostname, parts.port, ssl=(context if trust else True) if parts.scheme == "https" else None), parts.path
async def get(url, data=None, timeout=5, trust=True):
    async with asyncio.timeout(timeout):
        reader, writer, path = await opened(url, trust)
        writer.write(b"POST %b HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(data or b"")) + (data or b""))
        await writer.drain()
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    return answer.partition(b"\r\n\r\n")[2]
async def lines(url, told):
    reader, writer, path = await opened(url)
    writer.write(b"GET %b HTTP/1.0\r\n\r\n" % path.encode())
    async for line in reader:
        if line.startswith(b"line"): await told(line)
    writer.close()`},
}

const clientHead = `
import ssl
from urllib.parse import urlsplit
open("/tmp/authority.pem", "w").write(AUTHORITY)
context = ssl.create_default_context(cafile="/tmp/authority.pem")`

const clientBody = `
bases = f"http://{PLAIN}", f"https://{SECURE}"
async def told(line):
    seen.append(line.decode() if isinstance(line, bytes) else line)
    if len(seen) < 3: await get(bases[0] + "/next")
async def error(*args, **named):
    try: return f"no error: {await get(*args, **named)}"
    except Exception as e: return f"{type(e).__name__}: {e}"
found = {"kept": [], "redirect": [], "count": [], "lines": []}
for base in bases:
    found["kept"].append(await get(base + "/who") == await get(base + "/who"))
    found["redirect"].append((await get(base + "/redirect")).startswith(b"127.0.0.1:"))
    found["count"].append(int(await get(base + "/count", data=b"x" * 3_000_000)))
    seen = []
    await lines(base + "/lines", told)
    found["lines"].append([line.strip() for line in seen])
found["late"] = await error(bases[0] + "/never", timeout=0.2)
found["refused"] = await error("http://127.0.0.1:1/")
found["unknown"] = await error("http://nobody.invalid:80/")
found["forged"] = await error(bases[1] + "/who", trust=False)
found`

// setting is a program's first lines: where the site is.
func (s site) setting() string {
	return fmt.Sprintf("AUTHORITY, PLAIN, SECURE = %q, %q, %q\n", s.authority, s.plain, s.secure)
}

// TestClientsReachWhatIsGranted: every client works over the sockets that Deno opens,
// and without the permission each says which flag is missing.
func TestClientsReachWhatIsGranted(t *testing.T) {
	s := newSite(t)
	granted := open(t, newEngine(t, permit(t, "--allow-net="+s.plain+","+s.secure+",127.0.0.1:1,nobody.invalid:80")), job.SessionOptions{})
	without := open(t, newEngine(t), job.SessionOptions{})
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			p := python(s.setting() + clientHead + c.code + clientBody)
			p.Packages = c.packages
			r := in(t, granted, p)
			var found struct {
				Kept, Redirect                 []bool
				Count                          []int
				Lines                          [][]string
				Late, Refused, Unknown, Forged string
			}
			if err := json.Unmarshal(r.Value, &found); err != nil {
				t.Fatalf("%s, %+v, stderr %s", r.Status, r.Error, r.Stderr)
			}
			want := fmt.Sprintf("[%t %[1]t] [true true] [3000000 3000000] [[line 0 line 1 line 2] [line 0 line 1 line 2]]", c.keeps)
			if got := fmt.Sprint(found.Kept, found.Redirect, found.Count, found.Lines); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			for _, e := range [][3]string{{found.Late, c.late, ""}, {found.Refused, c.refused, ""}, {found.Unknown, c.unknown, ""}, {found.Forged, c.forged, "certificate verify failed: "}, {found.Forged, c.forged, "DENO_CERT=FILE"}} {
				if !strings.HasPrefix(e[0], e[1]+":") || !strings.Contains(e[0], e[2]) {
					t.Errorf("%s, want %s: …%s…", e[0], e[1], e[2])
				}
			}

			p = python(s.setting() + clientHead + c.code + "\nawait get(f'http://{PLAIN}/who')")
			p.Packages = c.packages
			r = in(t, without, p)
			want = "The operator can allow it with --allow-net=" + s.plain + " in PYODIDE_PERMISSION_ARGS"
			if r.Error == nil || !strings.Contains(strings.ToLower(r.Error.Message), strings.ToLower(want)) || !strings.Contains(r.Error.Message, `Requires net access to "`+s.plain) {
				t.Errorf("without the permission: %s %s, %+v", r.Status, r.Value, r.Error)
			}
		})
	}
}

// TestClientsTrustWhomDenoTrusts: the operator's DENO_CERT counts for all, also for
// those that name certifi's certificates.
func TestClientsTrustWhomDenoTrusts(t *testing.T) {
	s := newSite(t)
	file := filepath.Join(t.TempDir(), "authority.pem")
	if err := errors.Join(os.WriteFile(file, []byte(s.authority), 0o644), os.Chmod(filepath.Dir(file), 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DENO_CERT", file)
	e := newEngine(t, permit(t, "--allow-net="+s.secure, "--allow-env"))
	p := python(s.setting() + `
import js, requests, ssl, urllib.request
url = f"https://{SECURE}/count"
alone = ssl.create_default_context(cadata=AUTHORITY)
[urllib.request.urlopen(url).read().decode(), requests.get(url).text, await (await js.fetch(url)).text(),
 urllib.request.urlopen(url, context=alone).read().decode()]`)
	if r := completed(t, e, p); string(r.Value) != `["0", "0", "0", "0"]` {
		t.Errorf("value %s", r.Value)
	}
}

func TestFetchSaysWhoseCertificateIsMissing(t *testing.T) {
	s := newSite(t)
	e := newEngine(t, permit(t, "--allow-net="+s.secure))
	r := run1(t, e, python(s.setting()+`
import pyodide.http
await pyodide.http.pyfetch(f"https://{SECURE}/count")`))
	if r.Error == nil || !strings.HasPrefix(r.Error.Message, "fetch failed: error sending request for url (https://"+s.secure) || !strings.HasSuffix(r.Error.Message, "\nThe operator can have a certificate's issuer trusted with DENO_CERT=FILE in the environment that Rillbox starts with.") {
		t.Errorf("%s, %+v", r.Status, r.Error)
	}
}

// TestABodyIsNotHeld: what a client streams is read as it takes it, and no more.
func TestABodyIsNotHeld(t *testing.T) {
	s := newSite(t)
	e := newEngine(t, permit(t, "--allow-net="+s.plain), func(o *Options) {
		o.Limits = job.DefaultLimits()
		o.Limits.Memory = 128 << 20
	})
	p := python(s.setting() + `
import asyncio, urllib.request
with urllib.request.urlopen(f"http://{PLAIN}/zeros") as r:
    n = sum(len(part) for part in iter(lambda: r.read(1 << 16), b""))
reader, writer = await asyncio.open_connection(*PLAIN.split(":"))
writer.write(b"GET /zeros HTTP/1.0\r\n\r\n")
await asyncio.sleep(0.1)  # it could fill a buffer without a bound
while part := await reader.read(1 << 16): n += len(part)
n >> 20`)
	if r := completed(t, e, p); string(r.Value) != "400" {
		t.Errorf("value %s", r.Value)
	}
}

// TestSocketsWait: what waits for a socket ends with the cell's time, and the session
// goes on with its connections.
func TestSocketsWait(t *testing.T) {
	s := newSite(t)
	session := open(t, newEngine(t, permit(t, "--allow-net="+s.plain)), job.SessionOptions{})
	gives(t, session, s.setting()+"import asyncio, socket, urllib.request\nkept = socket.create_connection(PLAIN.split(':'))\nnever = f'http://{PLAIN}/never'\nasync def main(): urllib.request.urlopen(never)\n1", "1")
	for _, code := range []string{
		"urllib.request.urlopen(never)", "urllib.request.urlopen(never, timeout=60)", "asyncio.run(main())", "await asyncio.gather(main(), main())",
		"r, w = await asyncio.open_connection(*PLAIN.split(':'))\nawait r.read()",
	} {
		p := python(code)
		p.Timeout = 500 * time.Millisecond
		if r := in(t, session, p); r.Status != job.TimedOut || r.State != job.StateKept {
			t.Errorf("%s: %s %s, %+v", code, r.Status, r.State, r.Error)
		}
	}
	gives(t, session, "kept.sendall(b'GET /who HTTP/1.0\\r\\n\\r\\n')\nkept.recv(15).decode()", `"HTTP/1.0 200 OK"`)
	gives(t, session, "done = []\nasyncio.get_event_loop().call_soon(lambda: done.append(len(urllib.request.urlopen(f'http://{PLAIN}/count').read())))\nwhile not done: await asyncio.sleep(0)\ndone", "[1]")
	r := in(t, session, python("from pyodide.code import run_js\nrun_js('(f) => f()')(lambda: urllib.request.urlopen(never))"))
	if r.Error == nil || r.State != "" {
		t.Errorf("called by JavaScript: %s %s, %+v", r.Status, r.State, r.Error)
	}
}

// TestSockets: what is peculiar in them here.
func TestSockets(t *testing.T) {
	s := newSite(t)
	closes, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer closes.Close()
	go func() {
		if conn, err := closes.Accept(); err == nil {
			_, _ = conn.Read(make([]byte, 1<<16))
			_ = conn.Close()
		}
	}()
	session := open(t, newEngine(t, permit(t, "--allow-net="+s.plain+","+s.secure+",[::1]:1,"+closes.Addr().String())), job.SessionOptions{})
	gives(t, session, s.setting()+fmt.Sprintf("CLOSES = %q", closes.Addr())+`
import asyncio, errno, select, socket, ssl
address = ("127.0.0.1", int(PLAIN.split(":")[1]))
def error(step, *args, **named):
    try: return f"no error: {step(*args, **named)}"
    except Exception as e: return f"{type(e).__name__}: {e}"
1`, "1")
	for _, row := range [][2]string{
		{"with socket.create_connection(address) as s: found = [s.getpeername() == address, s.getsockname()[0], s.fileno() > 2]\nfound", `[true, "127.0.0.1", true]`},
		// An address that stands for a name is nobody's.
		{"socket.gethostbyname('example.com').startswith('240.0.')", "true"},
		{"len({socket.gethostbyname(f'{n}.example.com') for n in range(1000)})", "1000"},
		{"error(socket.create_connection, ('::1', 1)).partition(':')[0]", `"ConnectionRefusedError"`},
		{"'\"[::1]:2\"' in error(socket.create_connection, ('0:0::1', 2))", "true"},
		{"with socket.create_connection(address) as s: found = [list(map(len, select.select([s], [s], [], 0.01)))]\n" +
			"with socket.create_connection(address) as s:\n  s.send(b'GET /who HTTP/1.0\\r\\n\\r\\n')\n  found.append(list(map(len, select.select([s], [], [], 5))))\nfound", `[[0, 1, 0], [1, 0, 0]]`},
		{"s = socket.socket()\ns.setblocking(False)\nfirst = error(s.connect, address).partition(':')[0]\nfound = [first in ('BlockingIOError', 'no error'), len(select.select([], [s], [], 5)[1]), s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), error(s.recv, 1).partition(':')[0]]\ns.close()\nfound", `[true, 1, 0, "BlockingIOError"]`},
		{"s = socket.create_connection(address)\nd = s.dup()\ns.close()\nd.sendall(b'GET /who HTTP/1.0\\r\\n\\r\\n')\nd.shutdown(socket.SHUT_WR)\nfound = d.recv(4).decode()\nd.close()\nfound", `"HTTP"`},
		{"with socket.create_connection(address) as s: found = error(s.recv, 1, socket.MSG_PEEK)\n'flags' in found", "true"},
		{"kept = []\ntry:\n  while True: kept.append(socket.socket())\nexcept OSError as e: found = e.errno == errno.EMFILE\nfor s in kept: s.close()\n[found, len(kept) <= 500, socket.socket().close()]", "[true, true, null]"},
		// Without TLS's own sockets: an upgrade, a wrapped socket that connects later.
		{"context = ssl.create_default_context(cadata=AUTHORITY)\nr, w = await asyncio.open_connection(*SECURE.split(':'))\nawait w.start_tls(context, server_hostname='127.0.0.1')\nw.write(b'GET /who HTTP/1.0\\r\\n\\r\\n')\nfound = (await r.read())[:4].decode()\nw.close()\nfound", `"HTTP"`},
		{"with context.wrap_socket(socket.socket(), server_hostname='127.0.0.1') as s:\n  s.connect(('127.0.0.1', int(SECURE.split(':')[1])))\n  found = [s.version(), s.cipher()[1], s.getpeercert()['subject'][0][0][1], len(s.getpeercert(True)) > 300]\nfound", `["TLSv1.3", "TLSv1.3", "a test's server", true]`},
		// Connections that end early: in the handshake, in a body.
		{"error(context.wrap_socket, socket.create_connection(CLOSES.split(':')), server_hostname='127.0.0.1').partition(':')[0]", `"SSLEOFError"`},
		{"import urllib.request\n[error(urllib.request.urlopen(f'{base}/cut', context=context if base[4] == 's' else None).read) for base in (f'http://{PLAIN}', f'https://{SECURE}')]", `["IncompleteRead: IncompleteRead(4 bytes read, 5 more expected)", "IncompleteRead: IncompleteRead(4 bytes read, 5 more expected)"]`},
		{"s = context.wrap_socket(socket.create_connection(SECURE.split(':')), server_hostname='127.0.0.1', do_handshake_on_connect=False)\nfound = s.version()\ns.sendall(b'GET /who HTTP/1.0\\r\\n\\r\\n')\n[found, s.recv(4).decode(), s.close()]", `[null, "HTTP", null]`},
		{"ssl.get_server_certificate(SECURE.split(':')).startswith('-----BEGIN')", "true"},
		{"besides = ssl.create_default_context()\nbesides.load_verify_locations(cadata=AUTHORITY)\nbesides.maximum_version = ssl.TLSVersion.TLSv1_2\nwith besides.wrap_socket(socket.create_connection(SECURE.split(':')), server_hostname='127.0.0.1') as s: found = s.version()\nfound", `"TLSv1.2"`},
		{"'altnames' in error(context.wrap_socket, socket.create_connection(SECURE.split(':')), server_hostname='example.com')", "true"},
		{"error(context.wrap_socket, socket.create_connection(address), server_hostname='127.0.0.1').partition(':')[0]", `"SSLError"`},
	} {
		r := in(t, session, python(row[0]))
		var got, want bytes.Buffer
		if r.Error != nil || errors.Join(json.Compact(&got, r.Value), json.Compact(&want, []byte(row[1]))) != nil || got.String() != want.String() {
			t.Errorf("%s: value %s, %+v; want %s", row[0], r.Value, r.Error, row[1])
		}
	}
}
