//go:build !windows

package main

import (
	"slices"
	"strings"
	"testing"
)

// TestWhatFollowsAModuleIsItsOwn: no flag of ours stands there.
func TestWhatFollowsAModuleIsItsOwn(t *testing.T) {
	root := (&app{config: newConfig()}).rootCommand()
	for given, want := range map[string]string{
		"run -m pytest -q tests":                "run -m pytest -- -q tests",
		"run -qm pytest -q":                     "run -qm pytest -- -q",
		"run -mpytest -q":                       "run -mpytest -- -q",
		"run --module=pytest -q":                "run --module=pytest -- -q",
		"run --module pytest -q":                "run --module pytest -- -q",
		"--quiet run -p six -m json.tool --n 3": "--quiet run -p six -m json.tool -- --n 3",
		"run --timeout 3s -m timeit -n 1":       "run --timeout 3s -m timeit -- -n 1",
		"run -p -m x.py -m":                     "run -p -m x.py -m",
		"run x.py -m pytest":                    "run x.py -m pytest",
		"run -- -m pytest":                      "run -- -m pytest",
		"run - -m pytest":                       "run - -m pytest",
		"run --json -m this":                    "run --json -m this --",
		"run -m":                                "run -m",
		"run":                                   "run",
		"serve -m x":                            "serve -m x",
		"run --unknown -m pytest -q":            "run --unknown -m pytest -- -q",
	} {
		if got := afterModule(root, strings.Fields(given)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s becomes %s", given, strings.Join(got, " "))
		}
	}
}

func TestTheFirstLineOfAScriptNamesItsLanguage(t *testing.T) {
	for line, want := range map[string]string{
		"#!/usr/bin/python3":                         "python",
		"#!/usr/bin/env python3.13 -u":               "python",
		"#! /usr/bin/env -S PYTHONUTF8=1 python":     "python",
		"#!/usr/bin/env -S uv run --script":          "python",
		"#!/usr/bin/env -S uv run --with rich -s":    "python",
		"#!/usr/bin/env -S pipx run":                 "python",
		"#!/usr/bin/env node":                        "javascript",
		"#!/usr/bin/env -S node --no-warnings":       "javascript",
		"#!/usr/bin/env -S npx -y tsx":               "typescript",
		"#!/usr/bin/env -S npx ts-node --esm":        "typescript",
		"#!/usr/bin/env bun":                         "typescript",
		"#!/usr/bin/env -S deno run --allow-net=x.y": "typescript",
		"#!/bin/sh":           "bash",
		"#!/usr/bin/expect":   "",
		"#!":                  "",
		"#!/usr/bin/env":      "",
		"# python":            "",
		"#!/usr/bin/python\r": "python",
		"":                    "",
	} {
		if got := languageOfScript(line + "\ncode"); string(got.Name) != want {
			t.Errorf("%q is of %q, want %q", line, got.Name, want)
		}
	}
}
