package workspace

import (
	"fmt"
	"testing"
)

func BenchmarkSnapshot(b *testing.B) {
	for _, files := range []int{1, 10, 1000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			d := open(b, Options{})
			for i := range files {
				if err := d.WriteAll(map[string][]byte{fmt.Sprintf("%d/%d", i%10, i): {1}}); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if _, err := d.Snapshot(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	d := open(b, Options{Bytes: 1 << 30, Files: 1000})
	for b.Loop() {
		if _, err := d.Write("a/file", []byte("content")); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriteAll(b *testing.B) {
	d := open(b, Options{Bytes: 1 << 30, Files: 1000})
	for b.Loop() {
		if err := d.WriteAll(map[string][]byte{"a/file": []byte("content")}); err != nil {
			b.Fatal(err)
		}
	}
}
