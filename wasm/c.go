package wasm

import "rillbox/supervisor/job"

// The files that clang reads of a workspace.
var cSources = []string{".c", ".h", ".cc", ".cpp", ".cxx", ".c++", ".hpp", ".hh", ".hxx", ".h++", ".inc", ".inl", ".ipp", ".def", ".txt"}

var c = language{
	LanguageInfo: job.LanguageInfo{
		Name: "c", Title: "C", Aliases: []string{"clang", "gcc"}, Extensions: []string{".c"}, Interpreters: []string{"tcc"},
	},
	version:       "clang 22.0.0",
	guest:         "native",
	flags:         []string{"--stack-size=4000"}, // recursion as deep as Linux's 8 MiB allow for most programs
	compiler:      "clang",
	compilerFlags: []string{"--liftoff-only"},
	sources:       cSources,
	makes:         []string{"clang.wasm"},
	parts:         []string{"@yowasp/clang"},
}

var cpp = language{
	LanguageInfo: job.LanguageInfo{
		Name: "cpp", Title: "C++", Aliases: []string{"c++", "clang++", "clangpp", "g++", "cxx"}, Extensions: []string{".cpp", ".cc", ".cxx", ".c++"},
	},
	version:       "clang 22.0.0",
	guest:         "native",
	flags:         []string{"--stack-size=4000"}, // recursion as deep as Linux's 8 MiB allow for most programs
	compiler:      "clang",
	compilerFlags: []string{"--liftoff-only"},
	sources:       cSources,
	makes:         []string{"clang.wasm", "gnu++23.pch"},
	parts:         []string{"@yowasp/clang"},
}
