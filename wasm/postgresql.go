package wasm

import "rillbox/supervisor/job"

var postgresql = language{
	LanguageInfo: job.LanguageInfo{
		Name: "postgresql", Title: "PostgreSQL", Aliases: []string{"postgres", "psql", "pg"}, Extensions: []string{".pgsql", ".psql"},
		Banner: "PostgreSQL ${postgresql}", Prompt: "=> ", More: "-> ", Exits: []string{"\\q", "exit", "quit"},
	},
	version: "18.6",
	guest:   "postgres",
	// Room for what PostgreSQL itself bounds: max_stack_depth is 1 MB.
	flags:      []string{"--stack-size=4000"},
	parts:      []string{"@electric-sql/pglite"},
	heap:       256 << 20,
	large:      true, // 670 MB
	keepsState: true,
}
