package wasm

import "rillbox/supervisor/job"

var clojure = language{
	LanguageInfo: job.LanguageInfo{
		Name: "clojure", Title: "Clojure", Aliases: []string{"clj", "clojurescript", "cljs", "nbb", "babashka"},
		Extensions: []string{".clj", ".cljs", ".cljc"}, Interpreters: []string{"bb"},
		Banner: "ClojureScript in nbb ${clojure}", Prompt: "user=> ", More: "  ", Exits: []string{"exit", "quit", ":exit", "(System/exit 0)"},
	},
	version:    "1.6.214",
	guest:      "clojure",
	flags:      []string{"--stack-size=4000"},
	parts:      []string{"nbb", "import-meta-resolve"},
	keepsState: true,
}
