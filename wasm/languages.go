package wasm

import (
	"slices"
	"strings"

	"rillbox/supervisor/job"
)

// language is a row: all that the engine knows of a language.
type language struct {
	job.LanguageInfo
	version string // the runtime's
	// guest is the module of guest/languages that runs its programs.
	guest string
	// compiler is the module of guest/compile that makes a WebAssembly module of a program
	// before it runs; empty where there is none. sources are the extensions of what it reads
	// of the workspace.
	compiler string
	sources  []string
	// makes are files that the compiler makes once for all programs, from its parts alone.
	makes []string
	// translates says that the compiler makes JavaScript, which the engine for that runs.
	translates bool
	// parts are the packages of parts.json that it is made of.
	parts []string
	// toolchain says that its compiler is built by setup, and is its part "go"; see golang.go.
	toolchain bool
	// flags are V8's, of the child that runs programs.
	flags, compilerFlags []string
	// heap is how many bytes of WebAssembly's memory the runtime has at its start; 0 stands
	// for some.
	heap int64
	// large says that a child which waits would take more memory than its start is worth.
	large bool
	// keepsState says that the cells of a session run in one process. Others keep files.
	keepsState bool
	// calls says that its programs may run programs in other languages; see beside.go.
	calls bool
}

// rows are the engine's languages, each in a file of its own.
var rows = []language{
	bash, c, cpp, golang, ruby, php, perl, lua, r, sql, duckdb, postgresql, prolog, scheme, clojure, coffeescript, fsharp, quickjs, sass, scss,
}

// how is what models are told of all of them.
const how = "The other languages are WebAssembly, with their standard libraries and no packages, fetched at their first run: " +
	"bash with the usual commands (python3, node, ruby … run the other languages), c and cpp (clang), go, ruby, php, perl, lua, " +
	"r (plots are shown), sql (SQLite, main.db), duckdb, postgresql, prolog, scheme, clojure, coffeescript, fsharp, quickjs, sass."

// Languages are the engine's rows in the registry.
var Languages = func() (all []job.LanguageInfo) {
	for i := range rows {
		l := &rows[i]
		var licenses []string
		for _, name := range l.parts {
			l.Size += parts[name].Size
			licenses = append(licenses, parts[name].License)
		}
		l.How = how
		slices.Sort(licenses)
		l.License = strings.Join(slices.Compact(licenses), " AND ")
		all = append(all, l.LanguageInfo)
	}
	return all
}()

func rowOf(name job.Language) language {
	return rows[slices.IndexFunc(rows, func(l language) bool { return l.Name == name })]
}
