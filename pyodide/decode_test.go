package pyodide

import (
	"strings"
	"testing"
)

func TestFilesSayHowTheyAreEncoded(t *testing.T) {
	for _, row := range []struct{ source, want string }{
		{"# -*- coding: latin-1 -*-\nx = '\xe9'", "'é'"},
		{"#!/usr/bin/env python\n# vim: set fileencoding=cp1252 :\nx = '\x80'", "'€'"},
		{"# coding: iso-8859-15\r\nx = '\xa4'", "'€'"},
		{"# coding: KOI8-R\nx = '\xc1'", "'а'"},
		{"# coding: latin-1\nx = 'é'", "'Ã©'"}, // as CPython takes it
		{"# coding: utf-8\nx = 'é'", "'é'"},
		{"# coding: shift_jis\nx = 'a'", "'a'"},
		{"x = 1\n# coding: latin-1\ny = '\xe9'", "'\xe9'"}, // code comes before it
		{"x = '\xe9'", "'\xe9'"},
	} {
		if text, err := decode(row.source); err != nil || !strings.HasSuffix(text, row.want) {
			t.Errorf("%q: %q, %v", row.source, text, err)
		}
	}
	for source, want := range map[string]string{
		"# coding: shift_jis\nx = '\x82\xa0'": "shift_jis",
		"# coding: cp1252\nx = '\x81'":        "is not what its first lines say",
	} {
		if text, err := decode(source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v", source, text, err)
		}
	}
}
