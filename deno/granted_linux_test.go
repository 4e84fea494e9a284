package deno_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// TestGrantedFeaturesNeedNoCallThatIsRefused uses the parts of Deno and of its
// Node modules that make system calls of their own, each with no more than it
// needs: it works, and the filter refuses nothing.
func TestGrantedFeaturesNeedNoCallThatIsRefused(t *testing.T) {
	for _, test := range []struct {
		name, flags, code string
	}{
		{"files", "-R=. -W=.", `
			Deno.chdir(Deno.args[0]);
			await Deno.mkdir("d/x", { recursive: true });
			await Deno.writeTextFile("d/a", "x");
			await Deno.writeTextFile("d/a", "y", { append: true });
			await Deno.copyFile("d/a", "d/b");
			using f = await Deno.open("d/a", { read: true, write: true });
			await f.lock(true); await f.unlock(); await f.seek(0, 0); await f.sync(); await f.syncData();
			await f.utime(1, 2); await f.truncate(1); await f.stat();
			for await (const _ of Deno.readDir("d"));
			await Deno.rename("d/b", "d/c"); await Deno.link("d/a", "d/e"); await Deno.realPath("d/c");
			const w = Deno.watchFs("d"); setTimeout(() => Deno.writeTextFile("d/f", ""), 50);
			for await (const _ of w) break;
			await Deno.remove("d", { recursive: true });`},
		{"node:fs", "-R=. -W=.", `
			import fs from "node:fs";
			Deno.chdir(Deno.args[0]);
			fs.writeFileSync("a", "hi"); fs.copyFileSync("a", "b"); fs.renameSync("b", "c"); fs.linkSync("c", "l");
			const fd = fs.openSync("c", "r+");
			fs.fsyncSync(fd); fs.fdatasyncSync(fd); fs.ftruncateSync(fd, 1); fs.fchmodSync(fd, 0o644); fs.futimesSync(fd, 1, 1);
			fs.writeSync(fd, "abc", 0); fs.writevSync(fd, [Buffer.from("a")], 0); fs.readvSync(fd, [Buffer.alloc(1)], 0); fs.closeSync(fd);
			fs.mkdtempSync("t-");
			fs.watch(".").close();`},
		{"node:sqlite", "-R=. -W=.", `
			import { DatabaseSync } from "node:sqlite";
			Deno.chdir(Deno.args[0]);
			const d = new DatabaseSync("x.db"); d.exec("pragma journal_mode=wal; create table a(b); insert into a values(1)"); d.close();`},
		{"zlib and crypto", "", `
			import zlib from "node:zlib"; import crypto from "node:crypto";
			zlib.gunzipSync(zlib.gzipSync("x".repeat(1e6))); await new Promise((done) => zlib.deflate("x", done));
			crypto.scryptSync("a", "b", 32); crypto.generateKeyPairSync("rsa", { modulusLength: 1024 });
			await crypto.subtle.digest("SHA-256", new Uint8Array(1));`},
		{"threads and machine code", "", `
			const w = new Worker("data:text/javascript,postMessage(1)", { type: "module" });
			await new Promise((done) => w.onmessage = done); w.terminate();
			Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0, 5);
			new WebAssembly.Memory({ initial: 100, maximum: 3000, shared: true }).grow(100);`},
		{"servers", "--allow-net=127.0.0.1,localhost", `
			import http from "node:http"; import net from "node:net";
			const s = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, (q) => {
				if (!q.headers.get("upgrade")) return new Response("y");
				const { socket, response } = Deno.upgradeWebSocket(q);
				socket.onmessage = (e) => socket.send(e.data);
				return response;
			});
			await (await fetch("http://localhost:" + s.addr.port)).text();
			const ws = new WebSocket("ws://127.0.0.1:" + s.addr.port);
			await new Promise((done) => { ws.onopen = () => ws.send("x"); ws.onmessage = () => { ws.close(); done(); }; });
			await s.shutdown();
			const h = http.createServer((_, r) => r.end("x")); await new Promise((done) => h.listen(0, "127.0.0.1", done));
			await (await fetch("http://127.0.0.1:" + h.address().port)).text(); h.closeAllConnections(); h.close();
			const n = net.createServer((c) => { c.setKeepAlive(true, 1000); c.setNoDelay(); c.end(); });
			await new Promise((done) => n.listen(0, "127.0.0.1", done));
			await new Promise((done) => net.connect(n.address().port, "127.0.0.1").on("close", done).resume()); n.close();`},
		{"datagrams", "--allow-net=127.0.0.1", `
			import dgram from "node:dgram";
			const d = dgram.createSocket("udp4"); await new Promise((done) => d.bind(0, "127.0.0.1", done));
			d.setBroadcast(true); d.setTTL(5);
			await new Promise((done) => { d.on("message", done); d.send("x", d.address().port, "127.0.0.1"); }); d.close();`},
		{"the system", "--allow-sys -R", `
			import fs from "node:fs"; import os from "node:os";
			Deno.networkInterfaces(); os.networkInterfaces(); os.cpus(); os.userInfo(); os.setPriority(0, 19); fs.statfsSync("/");
			Deno.systemMemoryInfo(); Deno.loadavg(); Deno.osUptime(); Deno.hostname(); process.resourceUsage();`},
		{"programs", "--allow-run --allow-env", `
			import { execFileSync, spawn } from "node:child_process";
			await new Deno.Command("/bin/ls", { args: ["-l", "/"], stdin: "null" }).output();
			const sh = await new Deno.Command("/bin/sh", { args: ["-c", "echo a | cat; ulimit -n 64; sleep 0.1 & wait; kill -URG $$"] }).output();
			if (!sh.success) throw new Error(new TextDecoder().decode(sh.stderr));
			const c = new Deno.Command("/bin/sleep", { args: ["60"] }).spawn(); c.kill(); await c.status;
			execFileSync("/bin/true"); await new Promise((done) => spawn("/bin/true").on("close", done));`},
		{"native libraries", "--allow-ffi", `
			const l = Deno.dlopen("libc.so.6", { getpid: { parameters: [], result: "i32" }, getppid: { parameters: [], result: "i32", nonblocking: true } });
			l.symbols.getpid(); await l.symbols.getppid(); l.close();`},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			engine := newEngine(t, strings.ReplaceAll(test.flags, "=.", "="+dir))
			var mu sync.Mutex
			var refused []string
			launcher.ReportRefused(func(call string) {
				mu.Lock()
				defer mu.Unlock()
				if !slices.Contains(refused, call) {
					refused = append(refused, call)
				}
			})
			defer launcher.ReportRefused(nil)
			result := run(t, engine, job.Program{Code: test.code + "\nDeno.exit(0);", Args: []string{dir}})
			if result.Error != nil || result.ExitCode != 0 {
				t.Errorf("ended with %d: %+v\n%s", result.ExitCode, result.Error, result.Stderr.String())
			}
			mu.Lock()
			defer mu.Unlock()
			if len(refused) > 0 {
				t.Errorf("refused were %q", refused)
			}
		})
	}
}
