package pyodide

import (
	_ "embed"
	"regexp"

	"rillbox/supervisor/job"
)

//go:embed probe.py
var probe string

// Languages are the engine's rows in the registry.
var Languages = []job.LanguageInfo{{
	Name: job.Python, Title: "Python", Aliases: []string{"py", "python3", "pyodide"}, Extensions: []string{".py"}, Interpreters: []string{"uv", "uvx", "pipx"},
	How: "Python is CPython in WebAssembly (Pyodide), with top-level await: what is imported is installed by itself; " +
		"the last expression's value is the result. Threads take turns; no subprocesses or servers; packages with native code need a WebAssembly build.",
	Packages: "numpy>=2, httpx[http2], wheel URLs", Arguments: "sys.argv[1:]",
	AnyFile: " (open() finds files only at paths that a flag names)",
	Banner:  "Python ${python} in Pyodide ${pyodide}", Prompt: ">>> ", More: "... ", Exits: []string{"exit()", "quit()", "exit", "quit"},
	Decode: decode, Mentions: mentions, Commands: "pypi", Module: moduleProgram, LockFile: "pylock.toml",
	Continues: regexp.MustCompile(`^(\s|#|(elif|else|except|finally)\b)`), ReadsLines: true,
	Probe: probe, Endless: "while True: pass",
}}
