//go:build !windows

package main

import (
	"strings"
	"testing"
)

func TestWhatIsNoNotebookIsAnError(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"no JSON", "import os\n", "it is not a notebook, which is a JSON object: line 1: invalid character 'i'"},
		{"empty", "", "it is not a notebook, which is a JSON object"},
		{"a conflict in it", "{\n<<<<<<< HEAD\n", "line 2: invalid character '<'"},
		{"cut off", "{\n\"cells\":\n[", "line 3: unexpected EOF"},
		{"a list", "[]", "it is not a notebook, which is a JSON object"},
		{"null", "null", `its JSON object has no "nbformat"`},
		{"another JSON", `{"cells": []}`, `its JSON object has no "nbformat"`},
		{"two", `{"cells": [], "nbformat": 4} {}`, "something follows its JSON object"},
		{"an older format", `{"worksheets": [], "nbformat": 3}`, "it is not a notebook of format 4"},
		{"no cell", `{"cells": [7], "nbformat": 4}`, "its cell 1 is not a cell"},
		{"a number", `{"cells": [{"cell_type": "markdown"}, {"cell_type": "code", "source": 7}], "nbformat": 4}`, "its cell 2 has no code"},
		{"none", `{"cells": [{"cell_type": "code"}], "nbformat": 4}`, "its cell 1 has no code"},
		{"lists in a list", `{"cells": [{"cell_type": "code", "source": [["x"]]}], "nbformat": 4}`, `its cell 1 has no code: "source" must be a text or a list of lines`},
	} {
		if _, _, err := readNotebook(strings.NewReader(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
