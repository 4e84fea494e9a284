#!/usr/bin/env bash
# Builds the parts of Go that compile programs here: Go's own compiler and linker as
# WebAssembly for WASI, and its standard library compiled for the same. They are made of
# the Go on this machine, 1.24 or later, and the same Go makes the same bytes; its version
# is in VERSION. `rillbox setup go` runs this.
#
#	wasm/go-toolchain.sh DIRECTORY
set -euo pipefail

out=${1:?the directory to make}
command -v go >/dev/null || {
	echo "Go programs need the compiler of a Go installation: there is no go on PATH" >&2
	exit 1
}
version=$(go env GOVERSION)
minor=$(sed -E 's/^go1\.([0-9]+).*/\1/' <<<"$version")
[ "$minor" -ge 24 ] || {
	echo "Go programs need Go 1.24 or later, and this is $version" >&2
	exit 1
}
mkdir -p "$out/std"
cd "$(go env GOROOT)"
export GOOS=wasip1 GOARCH=wasm GOWASM= GOFLAGS=-trimpath GOTOOLCHAIN=local GOEXPERIMENT= CGO_ENABLED=0 GOWORK=off

for tool in compile link; do
	go build -ldflags='-s -w -buildid=' -o "$out/$tool.wasm" "cmd/$tool"
done

# The commands' own packages, and what only the compiler of a race detector needs, are left out.
: >"$out/packages"
go list -export -f '{{if .Export}}{{.ImportPath}} {{.Export}}{{end}}' std | sort | while read -r path file; do
	mkdir -p "$out/std/$(dirname "$path")"
	cp "$file" "$out/std/$path.a"
	echo "$path" >>"$out/packages"
done
echo "$version" >"$out/VERSION"
cp LICENSE "$out/LICENSE"
