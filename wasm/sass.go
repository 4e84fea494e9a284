package wasm

import "rillbox/supervisor/job"

// Sass has two syntaxes, by the extension of a stylesheet's file.
var (
	scss = language{
		LanguageInfo: job.LanguageInfo{Name: "scss", Title: "SCSS", Aliases: []string{"dart-sass"}, Extensions: []string{".scss"}},
		version:      "1.77.8",
		guest:        "sass",
		flags:        []string{"--stack-size=4000"},
		parts:        []string{"sass", "immutable"},
	}
	sass = language{
		LanguageInfo: job.LanguageInfo{Name: "sass", Title: "Sass", Aliases: []string{"sass-indented"}, Extensions: []string{".sass"}},
		version:      scss.version,
		guest:        scss.guest,
		flags:        scss.flags,
		parts:        scss.parts,
	}
)
