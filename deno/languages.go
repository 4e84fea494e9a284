package deno

import (
	_ "embed"
	"regexp"

	"rillbox/deno/modules"
	"rillbox/supervisor/job"
)

//go:embed probe.js
var probe string

const how = "JavaScript and TypeScript run on Deno, with top-level await: import npm packages by name " +
	"(import _ from \"lodash\"), or npm:, jsr: and https: specifiers; node: built-ins and, in CommonJS, require() work. " +
	"Types are stripped, not checked. export default gives the result."

// continues matches what begins no statement.
var continues = regexp.MustCompile(`^\s*(\.[^0-9]|[?:,)}\]*%&|^=]|(else|catch|finally|instanceof)\b)`)

// Languages are the engine's rows in the registry.
var Languages = []job.LanguageInfo{
	{
		Name: job.JavaScript, Title: "JavaScript", Aliases: []string{"js", "node", "nodejs"},
		Extensions: []string{".js", ".mjs", ".cjs", ".jsx"}, Syntaxes: []string{"jsx"},
		How: how, Packages: "lodash@4, jsr:@std/csv, https: URLs", Arguments: "Deno.args, process.argv.slice(2)",
		Banner: "JavaScript in Deno ${deno} (V8 ${v8})", Prompt: "> ", More: "  ", Exits: []string{"exit()", "quit()"},
		Mentions: modules.Mentions, Typed: true, Commands: "npm", LockFile: "deno.lock", Continues: continues, Probe: probe, Endless: "for (;;);",
	},
	{
		Name: job.TypeScript, Title: "TypeScript", Aliases: []string{"ts", "deno"},
		Extensions: []string{".ts", ".mts", ".cts", ".tsx"}, Syntaxes: []string{"tsx"}, Interpreters: []string{"bun", "ts-node"},
		How: how, Packages: "lodash@4, jsr:@std/csv, https: URLs", Arguments: "Deno.args, process.argv.slice(2)",
		Banner: "TypeScript ${typescript} in Deno ${deno}", Prompt: "> ", More: "  ", Exits: []string{"exit()", "quit()"},
		Mentions: modules.Mentions, Typed: true, LockFile: "deno.lock", Continues: continues,
	},
}
