//go:build !windows

package hostile

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"rillbox/cache/cachetest"
	"rillbox/deno"
	"rillbox/supervisor/job"
	"rillbox/wasm"
)

// newLimitedEngine gives an engine of wasm's with little memory.
func newLimitedEngine(t *testing.T) *wasm.Engine {
	t.Helper()
	limits := job.DefaultLimits()
	limits.Memory, limits.Stdout, limits.Stderr = 192<<20, 64<<10, 64<<10
	e, err := wasm.New(wasm.Options{Options: deno.Options{Cache: openShared(t), Limits: limits}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// greedy are programs that take all memory that they can get, that never end, and that
// write without end.
var greedy = map[job.Language]struct{ memory, loop, output string }{
	"bash":         {"x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done", "while :; do :; done", "yes"},
	"c":            {"#include <stdlib.h>\nint main(void) { for (;;) { volatile char *p = malloc(1 << 20); if (!p) abort(); p[5] = 1; } }", "int main(void) { volatile int i = 0; for (;;) i++; }", "#include <stdio.h>\nint main(void) { for (;;) puts(\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"); }"},
	"cpp":          {"#include <vector>\nint main() { std::vector<std::vector<char>> v; for (;;) v.emplace_back(1 << 20, 'x'); }", "int main() { volatile int i = 0; for (;;) i = i + 1; }", "#include <iostream>\nint main() { for (;;) std::cout << \"xxxxxxxxxxxxxxxxxxxxxxxx\\n\"; }"},
	"ruby":         {"a = []; loop { a << 'x' * 1_000_000 }", "loop {}", "loop { puts 'x' * 1000 }"},
	"php":          {"<?php ini_set('memory_limit', -1); $a = []; for (;;) $a[] = str_repeat('x', 1000000);", "<?php set_time_limit(0); for (;;);", "<?php for (;;) echo str_repeat('x', 1000), \"\\n\";"},
	"lua":          {"local t = {} while true do t[#t + 1] = ('x'):rep(1000000) .. #t end", "while true do end", "while true do print(('x'):rep(1000)) end"},
	"r":            {"x <- list(); repeat x[[length(x) + 1]] <- runif(1e6)", "repeat {}", "repeat cat(strrep('x', 1000), '\\n')"},
	"sql":          {"CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT randomblob(100000) FROM n;", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n;", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT hex(randomblob(1000)) FROM n;"},
	"duckdb":       {"CREATE TABLE t AS SELECT repeat('x', 1000) || i AS x FROM range(10000000) n(i);", "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range + b.range = 3;", "SELECT repeat('x', 1000) FROM range(100000000);"},
	"postgresql":   {"SELECT length(string_agg(repeat('x', 1000000), '')) FROM generate_series(1, 10000);", "DO $$ BEGIN LOOP END LOOP; END $$;", "SELECT repeat('x', 1000) FROM generate_series(1, 100000000);"},
	"prolog":       {"g(L) :- g([L, L, L, x|L]).\n:- initialization(g([])).", "l :- l.\n:- initialization(l).", "o :- repeat, writeln(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx), fail.\n:- initialization(o)."},
	"clojure":      {"(loop [a []] (recur (conj a (vec (range 100000)))))", "(loop [] (recur))", "(loop [] (println (apply str (repeat 1000 \"x\"))) (recur))"},
	"coffeescript": {"a = []\na.push new Array(1e6).fill a.length while true", "loop\n  1", "console.log 'x'.repeat 1000 while true"},
	"quickjs":      {"const a = []; for (;;) a.push(new Array(100000).fill(1.5));", "for (;;);", "for (;;) console.log('x'.repeat(1000));"},
	"scss":         {"@function f($n, $l) { @return f($n + 1, append($l, $l)); }\na { b: f(0, ()); }", "@while true { $x: 1; }", "@while true { @debug 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'; }"},
	"scheme":       {"(let f ((l '())) (f (cons (make-vector 100000 1) l)))", "(let f () (f))", "(let f () (display \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\") (newline) (f))"},
	"perl":         {"my @a; push @a, 'x' x 1000000 while 1;", "1 while 1;", "print 'x' x 1000, \"\\n\" while 1;"},
	"fsharp":       {"let l = System.Collections.Generic.List<float[]>()\nwhile true do l.Add(Array.create 1000000 1.5)", "while true do ()", "while true do printfn \"%s\" (String.replicate 1000 \"x\")"},
}

// TestWasmGreedyPrograms ends programs that take all that there is in a result that says
// why, and the engine runs the next.
func TestWasmGreedyPrograms(t *testing.T) {
	t.Parallel()
	e := newLimitedEngine(t)
	for language, programs := range greedy {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			cachetest.NeedNetwork(t, e.Prepare(context.WithoutCancel(t.Context()), func(job.Event) {}, language))
			run := func(code string, timeout time.Duration) outcome {
				return runProgram(t.Context(), e, job.Program{Language: language, Code: code, Workspace: t.TempDir(), Timeout: timeout}, nil)
			}
			if programs.memory != "" {
				o := run(programs.memory, 60*time.Second)
				t.Logf("memory: %s", o.summary())
				told := o.Error != nil && o.Error.Name != "" || strings.Contains(o.Stderr.String(), "memory") // Perl's own words
				if o.err != nil || !told || o.Status != job.OutOfMemory && o.Status != job.Failed && o.Status != job.Crashed {
					t.Errorf("a full memory ended as %s", o.summary())
				}
			}
			o := run(programs.loop, time.Second/2)
			if o.err != nil || o.Status != job.TimedOut || o.Duration > 20*time.Second {
				t.Errorf("an endless loop ended as %s after %v", o.summary(), o.Duration)
			}
			if !slices.Contains([]job.Language{"bash", "c", "ruby", "php", "quickjs", "postgresql", "clojure"}, language) { // the others write by the same functions
				return
			}
			o = run(programs.output, time.Second/2)
			if o.err != nil || o.Status == job.Completed || o.Status == job.Crashed || o.Status == job.Failed && o.Error == nil || len(o.Stdout.String())+len(o.Stderr.String()) > 1<<20 {
				t.Errorf("endless output ended as %s, with %d bytes kept", o.summary(), len(o.Stdout.String()))
			}
		})
	}
}

// TestWasmShellBombs gives the shell's programs small files that become large, and
// patterns that take for ever.
func TestWasmShellBombs(t *testing.T) {
	t.Parallel()
	e := newLimitedEngine(t)
	cachetest.NeedNetwork(t, e.Prepare(context.WithoutCancel(t.Context()), func(job.Event) {}, "bash"))
	for name, code := range map[string]string{
		"gzip of a gigabyte":          `head -c 1000000000 /dev/zero | gzip > z.gz; gunzip -c z.gz | wc -c; gunzip -k z.gz; cat z.gz z.gz z.gz z.gz | gunzip | tail -c 1 | wc -c`,
		"a bomb in a variable":        `x=$(head -c 100000000 /dev/zero | tr '\0' x | gzip | base64 -w0 | base64 -d | gunzip); y=$x$x$x$x; echo ${#y}`,
		"tar of large files":          `truncate -s 10G big; ls -l big; tar cf - big | tar tf -; cp big big2; cat big big | md5sum`,
		"billion laughs":              `{ echo 'a: &a [x,x,x,x,x,x,x,x,x,x]'; p=a; for n in b c d e f g h i j; do echo "$n: &$n [*$p,*$p,*$p,*$p,*$p,*$p,*$p,*$p,*$p,*$p]"; p=$n; done; } | yq -o json .`,
		"a pattern that backtracks":   `echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! | grep -E '^(a+)+$'; echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! | sed -E 's/^(a|aa)+$//'; [[ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! =~ ^(a+)+$ ]]; echo '"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"' | jq 'test("^(a+)+$")'`,
		"a glob that backtracks":      `x=$(printf 'a%.0s' {1..200}); case $x in *a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b) ;; esac; shopt -s extglob; case $x in +(+(a))b) ;; esac; echo ${x//+(a*)+(a*)b/}`,
		"braces without end":          `echo {1..100000000} | tail -c 10; echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b} | wc -c`,
		"recursion":                   `f() { f; }; f`,
		"substitution in itself":      `f() { echo $(f); }; f`,
		"eval in eval":                `x='eval "$x"'; eval "$x"`,
		"a script of parentheses":     `eval "$(printf '(%.0s' {1..100000})"; echo $(( $(printf '(%.0s' {1..50000}) 1 $(printf ')%.0s' {1..50000}) ))`,
		"a power and a number":        `echo $((2**63 ** 2)); echo '9^9^9^9' | bc; printf '%1000000000d\n' 1 | wc -c; printf '%*.*f' 999999999 999999999 1 | wc -c; seq 1 1000000000 | tail -1`,
		"pipes without end":           `yes | yes | yes | cat > /dev/null`,
		"a file that is its own data": `echo x > f; cat f >> f; tail -f f`,
		"an awk and a jq without end": `awk 'BEGIN { while (1) x = x x "y" }' & jq -n '[limit(100000000; repeat("x"))] | length'; wait`,
		"sort of what does not end":   `yes | sort | head -1`,
		"links in a ring":             `ln -s b a; ln -s a b; cat a; ln -s . d; find -L . | head; ls d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d; cp -rL d c; du -L .; rg -L x .; tree -l . | tail -1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := runProgram(t.Context(), e, job.Program{Language: "bash", Code: code, Workspace: t.TempDir(), Timeout: 3 * time.Second}, nil)
			t.Logf("%s", o.summary())
			if o.err != nil || o.Duration > 30*time.Second || o.Error != nil && o.Error.Name == "InternalError" {
				t.Errorf("it ended as %s after %v", o.summary(), o.Duration)
			}
			if wrong := saysWhy(o); wrong != "" && o.Status != job.Failed {
				t.Errorf("%s: %s", wrong, o.summary())
			}
		})
	}
}

// hostileSources are programs that go for the compiler.
var hostileSources = []struct {
	name     string
	language job.Language
	code     string
}{
	{"a file that includes itself", "c", "#include __FILE__\nint main(void) { return 0; }"},
	{"a file that includes itself twice", "c", "#if __INCLUDE_LEVEL__ < 190\n#include __FILE__\n#include __FILE__\n#endif\nint main(void) { return 0; }"},
	{"macros that double", "c", "#define A x x x x x x x x x x\n#define B A A A A A A A A A A\n#define C B B B B B B B B B B\n#define D C C C C C C C C C C\n#define E D D D D D D D D D D\n#define F E E E E E E E E E E\n#define G F F F F F F F F F F\n#define H G G G G G G G G G G\n#define I H H H H H H H H H H\nint main(void) { int x = 0; I; }"},
	{"a huge array with values", "c", "int a[1 << 28] = {[(1 << 28) - 1] = 1};\nint main(void) { return a[5]; }"},
	{"an array on the stack", "c", "int main(void) { volatile char a[1 << 30]; a[1 << 29] = 1; return a[5]; }"},
	{"many parentheses", "c", "int main(void) { return " + strings.Repeat("(", 100_000) + "1" + strings.Repeat(")", 100_000) + "; }"},
	{"templates without end", "cpp", "// rillbox: -ftemplate-depth=100000000\ntemplate <int N> struct F { static const int v = F<N + 1>::v; }; int main() { return F<0>::v; }"},
	{"templates that double", "cpp", "template <int N, int M> struct F { static const int v = F<N - 1, 2 * M>::v + F<N - 1, 2 * M + 1>::v; }; template <int M> struct F<0, M> { static const int v = M; }; int main() { return F<24, 1>::v; }"},
	{"a constexpr loop", "cpp", "// rillbox: -fconstexpr-steps=2000000000\nconstexpr int f() { int n = 0; for (unsigned long i = 0; i < 10000000000000; i++) n ^= i; return n; } static_assert(f() != 1); int main() {}"},
	{"constexpr memory", "cpp", "// rillbox: -fconstexpr-steps=2000000000\nconstexpr int f() { for (int i = 0; i < 100000; i++) { int *p = new int[10000000]{}; p[5] = 1; } return 0; } static_assert(f() == 0); int main() {}"},
	{"#include of a file of the machine's", "c", "#include \"/etc/passwd\"\nint main(void) { return 0; }"},
	{"#include of a file by the workspace's parents", "c", "#include \"../../../../../../etc/passwd\"\n#include <../../../../../../etc/passwd>\nint main(void) { return 0; }"},
	{"#include of /proc", "c", "#include \"/proc/self/environ\"\n#include \"/proc/self/maps\"\nint main(void) { return 0; }"},
	{"#embed", "c", "const char a[] = {\n#embed \"/etc/passwd\"\n, 0};\n#include <stdio.h>\nint main(void) { puts(a); }"},
	{".incbin", "c", "__asm__(\".section .rodata.x,\\\"\\\",@\\nx: .incbin \\\"/etc/passwd\\\"\\n.globl x\\n.include \\\"/etc/passwd\\\"\\n\");\n#include <stdio.h>\nextern char x[]; int main(void) { puts(x); }"},
	{"#line that shows another file", "c", "#line 1 \"/etc/passwd\"\nint main(void) { return y; }"},
	{"options with files of the machine's", "c", "// rillbox: @/etc/passwd -include /etc/passwd -imacros /etc/passwd\nint main(void) { return 0; }"},
	{"options with other outputs", "c", "// rillbox: -o /dev/fd/3 -MD -MF /dev/fd/3\nint main(void) { return 0; }"},
	{"options with plugins", "c", "// rillbox: -fplugin=/etc/passwd -Xclang -load -Xclang /etc/passwd\nint main(void) { return 0; }"},
	{"options with another root", "c", "// rillbox: --sysroot=/etc -I/etc -L/etc -B/etc -isystem /etc\n#include <passwd>\nint main(void) { return 0; }"},
	{"options of the linker's", "c", "// rillbox: -Wl,--whole-archive,/etc/passwd -Wl,-T,/etc/passwd -Wl,--reproduce=/workspace/x\nint main(void) { return 0; }"},
	{"sources of the machine's", "c", "// rillbox: /etc/passwd ../../../etc/passwd.c /proc/self/mem.c\nint main(void) { return 0; }"},
	{"a module with imports of its own", "c", "__attribute__((import_module(\"env\"), import_name(\"eval\"))) int evaluate(const char *);\n__attribute__((import_module(\"wasi_snapshot_preview1\"), import_name(\"__proto__\"))) int proto(void);\n__attribute__((import_module(\"__proto__\"), import_name(\"constructor\"))) int constructor(const char *);\nint main(void) { return evaluate(\"Deno.exit(9)\") + proto() + constructor(\"x\"); }"},
	{"CoffeeScript that is deep", "coffeescript", strings.Repeat("(", 20_000) + strings.Repeat(")", 20_000)},
	{"CoffeeScript that requires in the compiler", "coffeescript", "`\n}}); require('fs'); ({a(){{`\nconsole.log 1"},
	{"Sass that imports itself", "scss", "@import 'main';\na { b: c }"},
	{"Sass that nests", "scss", strings.Repeat("a{", 20_000) + "b:c" + strings.Repeat("}", 20_000)},
	{"Sass whose selectors multiply", "scss", strings.Repeat("a,b,c,d,e,f,g,h{", 12) + "x:y" + strings.Repeat("}", 12)},
}

// TestWasmHostileSources compiles what breaks compilers, fills their memory, never ends,
// or asks for the machine's files: it ends in a result that tells nothing of these.
func TestWasmHostileSources(t *testing.T) {
	t.Parallel()
	e := newLimitedEngine(t)
	for _, row := range hostileSources {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			cachetest.NeedNetwork(t, e.Prepare(context.WithoutCancel(t.Context()), func(job.Event) {}, row.language))
			began := time.Now()
			o := runProgram(t.Context(), e, job.Program{Language: row.language, Code: row.code, Workspace: t.TempDir(), Timeout: 3 * time.Second}, nil)
			t.Logf("after %v: %s", time.Since(began), o.summary())
			if o.err != nil || time.Since(began) > 60*time.Second {
				t.Errorf("it ended after %v as %s", time.Since(began), o.summary())
			}
			for _, what := range []string{"root:x:0:0:root:/root:/bin/bash", "root:*", "daemon:", "nobody:", "HOME=", "rw-p", "Mounts:"} {
				if strings.Contains(o.text(), what) {
					t.Errorf("it shows %q of the machine's: %s", what, o.text())
				}
			}
			if wrong := saysWhy(o); wrong != "" && o.ExitCode == 134 {
				t.Errorf("%s: %s", wrong, o.summary())
			}
		})
	}
}

// TestWasmCompiledIsNotPoisoned has one client compile what is like another's program in
// all but one thing that the compiler reads: each gets its own.
func TestWasmCompiledIsNotPoisoned(t *testing.T) {
	t.Parallel()
	e := newLimitedEngine(t)
	cachetest.NeedNetwork(t, e.Prepare(context.WithoutCancel(t.Context()), func(job.Event) {}, "c", "cpp"))
	const program = "#include <stdio.h>\n#include \"a.h\"\nint main(int n, char **args) { printf(\"%s %s %s\", WHO, __FILE__, n > 1 ? args[1] : \"-\"); }\n"
	type variant struct {
		name     string
		language job.Language
		path     string
		files    map[string]string // in the workspace
		beside   map[string][]byte
		args     []string
		want     string
	}
	variants := []variant{
		{"one client", "c", "main.c", map[string]string{"a.h": `#define WHO "one"`}, nil, nil, "one main.c -"},
		{"another client's header", "c", "main.c", map[string]string{"a.h": `#define WHO "two"`}, nil, nil, "two main.c -"},
		{"another name of the file", "c", "other.c", map[string]string{"a.h": `#define WHO "one"`}, nil, nil, "one other.c -"},
		{"a file beside the program that hides the workspace's", "c", "main.c", map[string]string{"a.h": `#define WHO "one"`}, map[string][]byte{"a.h": []byte(`#define WHO "beside"`)}, nil, "beside main.c -"},
		{"a header before the compiler's own", "c", "main.c", map[string]string{"a.h": `#define WHO "one"`, "stdio.h": "#include_next <stdio.h>\n"}, nil, nil, "one main.c -"},
		{"other arguments", "c", "main.c", map[string]string{"a.h": `#define WHO "one"`}, nil, []string{"x"}, "one main.c x"},
		{"another language", "cpp", "main.cpp", map[string]string{"a.h": `#define WHO "one"`}, nil, nil, "one main.cpp -"},
		{"a header that leads out", "c", "main.c", map[string]string{"a.h": "->" + "/etc/hostname"}, nil, nil, ""},
		{"one client again", "c", "main.c", map[string]string{"a.h": `#define WHO "one"`}, nil, nil, "one main.c -"},
	}
	for _, v := range variants {
		dir := t.TempDir()
		for name, text := range v.files {
			if target, link := strings.CutPrefix(text, "->"); link {
				symlink(t, target, dir+"/"+name)
				continue
			}
			write(t, dir+"/"+name, text)
		}
		o := runProgram(t.Context(), e, job.Program{Language: v.language, Code: program, Path: v.path, Files: v.beside, Args: v.args, Workspace: dir}, nil)
		if got := o.Stdout.String(); got != v.want {
			t.Errorf("%s: %q, want %q: %s", v.name, got, v.want, o.summary())
		}
	}
}

// TestWasmWarmChildrenAreNew runs programs of several clients in children that were
// started ahead: none sees what another left.
func TestWasmWarmChildrenAreNew(t *testing.T) {
	t.Parallel()
	limits := job.DefaultLimits()
	e, err := wasm.New(wasm.Options{Options: deno.Options{Cache: openShared(t), Limits: limits, Warm: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	for language, code := range map[job.Language]string{
		"ruby":    `puts $left.inspect, File.exist?("/tmp/left"), Dir.children("/workspace").inspect; $left = 1; File.write("/tmp/left", "%s"); File.write("left", "x"); class String; def inspect = "poisoned"; end`,
		"lua":     `print(left, io.open("/tmp/left"), io.open("left")); left = 1; io.open("/tmp/left", "w"):write("%s"):close(); io.open("left", "w"):close(); print = nil`,
		"bash":    `echo $left; cat /tmp/left left; left=%s; echo x > /tmp/left; echo x > left; echo() { :; }`,
		"clojure": `(println js/globalThis.left) (set! js/globalThis.left "%s") (spit "/tmp/left" "x") (spit "left" "x")`,
	} {
		t.Run(string(language), func(t *testing.T) {
			cachetest.NeedNetwork(t, e.Prepare(context.WithoutCancel(t.Context()), func(job.Event) {}, language))
			var first outcome
			secret := newSecret()
			for i := range 4 {
				o := runProgram(t.Context(), e, job.Program{Language: language, Code: fmt.Sprintf(code, secret)}, nil)
				if i == 0 {
					first = o
				}
				if o.err != nil || o.Status != first.Status || o.Stdout.String() != first.Stdout.String() || strings.Contains(o.Stdout.String(), secret) {
					t.Errorf("run %d: %s, and the first: %s", i, o.summary(), first.summary())
				}
				for until := time.Now().Add(20 * time.Second); e.Describe().Warm == 0 && time.Now().Before(until); {
					time.Sleep(20 * time.Millisecond)
				}
			}
		})
	}
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}
