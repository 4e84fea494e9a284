package cache

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// roleEnv makes this test binary a second process of the tests below.
const roleEnv = "RILLBOX_CACHE_TEST_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch role := os.Getenv(roleEnv); role {
	case "":
		os.Exit(m.Run())
	case "once":
		err = childMakesOnce(os.Args[1])
	case "fill":
		err = childFills(os.Args[1])
	case "import":
		err = childImports(os.Args[1])
	case "use":
		err = childUses(os.Args[1])
	default:
		err = fmt.Errorf("unknown role %q", role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// second starts this test binary in a role; its stdout is a pipe.
func second(t *testing.T, role, dir string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe, dir)
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, bufio.NewReader(out)
}

func childMakesOnce(dir string) error {
	c, err := Open(filepath.Join(dir, "cache"), Options{})
	if err != nil {
		return err
	}
	made := func(what string) error {
		f, err := os.OpenFile(filepath.Join(dir, "made"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(f, what)
		return errors.Join(err, f.Close())
	}
	path, _, err := c.GetOrPut(context.Background(), "k", "blob", func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, "blob")
		return errors.Join(err, made("blob"))
	})
	if err != nil {
		return err
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "blob" {
		return fmt.Errorf("the blob is %q, %v", text, err)
	}
	tree, _, err := c.Tree(context.Background(), "k", "tree", func(_ context.Context, dir string) error {
		return errors.Join(os.WriteFile(filepath.Join(dir, "f"), []byte("tree"), 0o600), made("tree"))
	})
	if err != nil {
		return err
	}
	if text, err := os.ReadFile(filepath.Join(tree, "f")); err != nil || string(text) != "tree" {
		return fmt.Errorf("the tree's file is %q, %v", text, err)
	}
	return nil
}

func TestProcessesThatWantTheSameMakeItOnce(t *testing.T) {
	dir := t.TempDir()
	var all []*exec.Cmd
	for range 4 {
		cmd, _ := second(t, "once", dir)
		all = append(all, cmd)
	}
	for _, cmd := range all {
		must(t, cmd.Wait())
	}
	if made := strings.Fields(mustRead(t, filepath.Join(dir, "made"))); len(made) != 2 {
		t.Errorf("made %q", made)
	}
}

// content is what the entry of a number holds: long enough to be killed in.
func content(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%06d\n", i), 5_000) }

// childFills stores entries without end, telling of each.
func childFills(dir string) error {
	c, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	for i := 0; ; i++ {
		path, _, err := c.GetOrPut(ctx, "blob", fmt.Sprint(i), func(_ context.Context, w io.Writer) error {
			for text := content(i); len(text) > 0; text = text[min(len(text), 4096):] {
				if _, err := w.Write(text[:min(len(text), 4096)]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if text, err := os.ReadFile(path); err != nil || !bytes.Equal(text, content(i)) {
			return fmt.Errorf("blob %d is wrong: %d bytes, %v", i, len(text), err)
		}
		tree, _, err := c.Tree(ctx, "tree", fmt.Sprint(i), func(_ context.Context, dir string) error {
			if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
				return err
			}
			for _, name := range []string{"a", "sub/b", "sub/c"} {
				if err := os.WriteFile(filepath.Join(dir, name), content(i), 0o600); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, name := range []string{"a", "sub/b", "sub/c"} {
			if text, err := os.ReadFile(filepath.Join(tree, name)); err != nil || !bytes.Equal(text, content(i)) {
				return fmt.Errorf("%s of tree %d is wrong: %d bytes, %v", name, i, len(text), err)
			}
		}
		fmt.Println(i)
	}
}

func TestAKillAtAnyInstantLeavesNothingHalfWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	kills := 40
	if testing.Short() {
		kills = 20
	}
	for n := range kills {
		cmd, out := second(t, "fill", dir)
		// Wait until it is past the old entries, so that the kill hits one in the making.
		last := -1
		for want := n; last < want; {
			if _, err := fmt.Fscanln(out, &last); err != nil {
				t.Fatalf("the child ended: %v, %v", err, cmd.Wait())
			}
		}
		time.Sleep(rand.N(8 * time.Millisecond)) // the instant is the point of the test
		must(t, cmd.Process.Kill())
		_ = cmd.Wait()

		var log bytes.Buffer
		c, err := Open(dir, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		must(t, err)
		if left, err := os.ReadDir(filepath.Join(dir, "tmp")); err != nil || len(left) != 1 {
			t.Fatalf("kill %d: temporary directories: %v, %v", n, left, err)
		}
		report, err := c.Verify(t.Context())
		if err != nil || len(report.Corrupt) > 0 || report.Checked < n {
			t.Fatalf("kill %d: %+v, %v", n, report, err)
		}
		for i := 0; ; i++ {
			path, err := c.Get("blob", fmt.Sprint(i))
			if errors.Is(err, ErrMiss) && i > last {
				break
			}
			must(t, err)
			if mustRead(t, path) != string(content(i)) {
				t.Fatalf("kill %d: blob %d is wrong", n, i)
			}
		}
		if log.Len() > 0 {
			t.Fatalf("kill %d: %s", n, &log)
		}
		must(t, c.Close())
	}
}

// childImports takes the archive beside the cache into it.
func childImports(dir string) error {
	archive, err := os.ReadFile(dir + ".archive")
	if err != nil {
		return err
	}
	f, err := os.Open(dir + ".archive")
	if err != nil {
		return err
	}
	defer f.Close()
	c, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return errors.Join(c.Import(context.Background(), f, sumOf(string(archive)), func(a *Archive, p Portable) (func(context.Context) error, error) {
		return func(ctx context.Context) error { return storeAny(ctx, c, a, p) }, nil
	}), c.Close())
}

// TestAnImportThatIsKilled leaves entries that are whole, and none of the rest.
func TestAnImportThatIsKilled(t *testing.T) {
	from := open(t, t.TempDir(), Options{})
	const entries = 60
	for i := range entries / 2 {
		_, err := from.Put(t.Context(), "blob", fmt.Sprint(i), bytes.NewReader(content(i)))
		must(t, err)
		_, _, err = from.Tree(t.Context(), "tree", fmt.Sprint(i), func(_ context.Context, dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "a"), content(i), 0o600), os.WriteFile(filepath.Join(dir, "b"), content(i+1), 0o700))
		})
		must(t, err)
	}
	var archive bytes.Buffer
	_, err := from.Export(t.Context(), &archive, []string{"blob", "tree"}, ownKey)
	must(t, err)
	dir := filepath.Join(t.TempDir(), "cache")
	must(t, os.WriteFile(dir+".archive", archive.Bytes(), 0o600))
	partly := 0
	for n := range 8 {
		if n%4 == 0 {
			must(t, os.RemoveAll(dir))
		}
		cmd, out := second(t, "import", dir)
		_, err := out.ReadString('\n')
		must(t, err)
		time.Sleep(rand.N(60 * time.Millisecond)) // the instant is the point of the test
		must(t, cmd.Process.Kill())
		_ = cmd.Wait()
		c, err := Open(dir, Options{})
		must(t, err)
		report, err := c.Verify(t.Context())
		if err != nil || len(report.Corrupt) > 0 {
			t.Fatalf("kill %d: %+v, %v", n, report, err)
		}
		if report.Checked > 0 && report.Checked < entries {
			partly++
		}
		if left, err := os.ReadDir(filepath.Join(dir, "tmp")); err != nil || len(left) != 1 {
			t.Fatalf("kill %d: temporary directories: %v, %v", n, left, err)
		}
		must(t, c.Close())
	}
	t.Logf("%d kills while entries were stored", partly)
	cmd, _ := second(t, "import", dir)
	must(t, cmd.Wait())
	c := open(t, dir, Options{})
	if report, err := c.Verify(t.Context()); err != nil || report.Checked != entries || len(report.Corrupt) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// childUses claims an entry of each kind, says so, and stays until it is killed.
func childUses(dir string) error {
	c, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	if _, err := c.Get("k", "old"); err != nil {
		return err
	}
	if _, err := c.GetTree("k", "old"); err != nil {
		return err
	}
	fmt.Println("ready")
	time.Sleep(time.Minute) // killed long before
	return nil
}

func TestALockOfADeadProcessIsFree(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, Options{})
	_, err := c.Put(t.Context(), "k", "old", strings.NewReader("x"))
	must(t, err)
	_, _, err = c.Tree(t.Context(), "k", "old", func(context.Context, string) error { return nil })
	must(t, err)
	must(t, c.live.close())
	c.live, err = newLive(c) // as a new process would
	must(t, err)

	cmd, out := second(t, "use", dir)
	_, err = out.ReadString('\n')
	must(t, err)
	freed, err := c.Trim(t.Context(), 0)
	if err != nil || freed.Entries != 0 || freed.InUse != 2 {
		t.Fatalf("while another uses it: %+v, %v", freed, err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	freed, err = c.Trim(t.Context(), -1)
	if err != nil || freed.Entries != 2 || freed.InUse != 0 {
		t.Fatalf("when it is dead: %+v, %v", freed, err)
	}
}

func TestALockExcludesAndCanBeGivenUp(t *testing.T) {
	c := open(t, t.TempDir(), Options{})
	unlock, err := c.Lock(t.Context(), "plan")
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 3*lockPoll)
	defer cancel()
	if _, err := c.Lock(ctx, "plan"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("err %v", err)
	}
	other, err := c.Lock(t.Context(), "another")
	must(t, err)
	other()
	unlock()
	var holders atomic.Int32
	var all sync.WaitGroup
	for range 20 { // each removes the file that the others may wait for
		all.Go(func() {
			unlock, err := c.Lock(t.Context(), "plan")
			if err != nil || holders.Add(1) != 1 {
				t.Errorf("%d have it, %v", holders.Load(), err)
				return
			}
			time.Sleep(time.Millisecond)
			holders.Add(-1)
			unlock()
		})
	}
	all.Wait()
	if left, err := os.ReadDir(filepath.Join(c.Dir(), "locks")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
