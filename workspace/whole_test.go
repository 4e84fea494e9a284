package workspace

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The test binary plays other processes when one of these is set to a
// directory.
const (
	playWriter   = "RILLBOX_TEST_WRITER"
	playFullDisk = "RILLBOX_TEST_FULL_DISK"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(playWriter); dir != "" {
		writeForever(dir)
	}
	if dir := os.Getenv(playFullDisk); dir != "" {
		fillDisk(dir)
	}
	os.Exit(m.Run())
}

const wholeSize = 512 << 10

// writeForever replaces one file again and again, by one that is of one letter,
// and says so each time.
func writeForever(dir string) {
	d, err := Open(dir, Options{})
	for i := 0; err == nil; i++ {
		_, err = d.Write("sub/file", bytes.Repeat([]byte{'a' + byte(i%26)}, wholeSize))
		fmt.Println(i)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func TestAKillLeavesWholeFiles(t *testing.T) {
	dir := t.TempDir()
	partial := 0
	for range 30 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), playWriter+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		for range 1 + rand.IntN(4) {
			if _, err := lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(rand.N(2 * time.Millisecond)) // at any instant
		_ = cmd.Process.Kill()
		_ = cmd.Wait()

		data, err := os.ReadFile(filepath.Join(dir, "sub/file"))
		if err != nil || len(data) != wholeSize || bytes.Count(data, data[:1]) != wholeSize {
			t.Fatalf("after a kill the file has %d bytes, or not all the same (%v)", len(data), err)
		}
		left, _ := filepath.Glob(filepath.Join(dir, partialPrefix+"*"))
		partial = len(left)
	}
	t.Logf("%d of 30 kills left a file in the making", partial)
}

func TestOpenRemovesWhatKilledWritersLeft(t *testing.T) {
	d := open(t, Options{})
	old := time.Now().Add(-2 * partialAge)
	name := func(s string) string { return partialPrefix + s + partialSuffix }
	for _, s := range []string{"old", "young", "future"} {
		guestWrites(t, d, name(s), "x")
	}
	guestWrites(t, d, "old", "x")
	guestWrites(t, d, "folder/"+name("old"), "x") // the guest's own
	for _, old := range []string{name("old"), "old", "folder/" + name("old")} {
		if err := os.Chtimes(d.path(old), time.Time{}, time.Now().Add(-2*partialAge)); err != nil {
			t.Fatal(err)
		}
	}
	future := time.Now().Add(2 * partialAge) // by a clock that was set back
	if err := os.Chtimes(d.path(name("future")), future, future); err != nil {
		t.Fatal(err)
	}
	guestWrites(t, d, name("dir")+"/file", "x")
	if err := os.Chtimes(d.path(name("dir")), old, old); err != nil {
		t.Fatal(err)
	}
	again, err := Open(d.path("."), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	l, err := again.List("")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%s %s/file %s folder folder/%s old", name("dir"), name("dir"), name("young"), name("old"))
	if got := names(l.Files); got != want {
		t.Errorf("left is %s, want %s", got, want)
	}
}
