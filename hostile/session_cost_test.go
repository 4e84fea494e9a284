//go:build !windows

package hostile

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rillbox/cache/cachetest"
)

// TestIdleSessionsCostWhatTheySay opens fifty sessions, compares what
// list_sessions says of their memory with what the kernel does, looks at the
// processor time that they take while nobody uses them, and ends them.
func TestIdleSessionsCostWhatTheySay(t *testing.T) {
	needWall(t)
	needProc(t)
	sessions := cachetest.Rounds(6, 12, 50)
	if free := memoryFree(t); sessions > 12 && free < 12<<30 {
		sessions = 6
		t.Logf("the machine has %d GiB free: %d sessions", free>>30, sessions)
	}
	s := serve(t, t.TempDir(), "--warm=0", fmt.Sprint("--sessions=", sessions), fmt.Sprint("--all-sessions=", sessions))
	open := func(n int) (ids []string) {
		for i := range n {
			says := speeches[i%len(speeches)]
			id := createSession(t, s.session, says.language, nil)
			if a := cell(t, s.session, id, says.language, says.add); string(a.Result) != "1" {
				t.Fatalf("%+v", a)
			}
			ids = append(ids, id)
		}
		return ids
	}
	end := func(ids []string) {
		for _, id := range ids {
			if _, refusal := use[fileAnswer](t, s.session, "destroy_session", map[string]any{"session_id": id}); refusal != "" {
				t.Error(refusal)
			}
		}
	}
	end(open(len(speeches))) // what stays for the life of the server
	s.checkNothingRuns(t)
	before := residentOf(t, s.process.Pid)

	start := time.Now()
	ids := open(sessions)
	t.Logf("%d sessions were made in %v", sessions, time.Since(start).Round(time.Millisecond))
	var said, proportional, largest int64
	byLanguage := map[string]int64{}
	for _, info := range listSessions(t, s.session) {
		said += info.MemoryBytes
		byLanguage[info.Language] += info.MemoryBytes
		largest = max(largest, info.MemoryBytes)
	}
	children := s.remains(t)
	for _, p := range children {
		proportional += proportionalOf(t, p.pid)
	}
	for language, n := range byLanguage {
		t.Logf("%s: %d MiB a session", language, n/int64((sessions+2)/len(speeches))>>20)
	}
	t.Logf("list_sessions says %d MiB, the kernel (PSS) %d MiB of %d processes; the largest has %d MiB", said>>20, proportional>>20, len(children), largest>>20)
	// What it says is their own memory; of what they share, the kernel counts a
	// part to each.
	if ratio := float64(said) / float64(proportional); ratio < 0.5 || ratio > 1.5 {
		t.Errorf("list_sessions says %.2f times what the kernel does", ratio)
	}
	if len(children) != sessions {
		t.Errorf("%d sessions have %d processes", sessions, len(children))
	}

	all := func() (ticks time.Duration) {
		for _, p := range children {
			ticks += processorTime(t, p.pid)
		}
		return ticks
	}
	const look = 5 * time.Second
	guests, server := all(), processorTime(t, s.process.Pid)
	time.Sleep(look)
	guests, server = all()-guests, processorTime(t, s.process.Pid)-server
	t.Logf("idle for %v, all sessions had %v of processor time, the server %v", look, guests, server)
	if guests > look/20 || server > look/10 {
		t.Errorf("idle sessions take %v and the server %v in %v", guests, server, look)
	}

	end(ids)
	s.checkNothingRuns(t)
	if left := listSessions(t, s.session); len(left) > 0 {
		t.Errorf("there still are %v", left)
	}
	after := residentOf(t, s.process.Pid)
	t.Logf("the server has %.1f MiB resident before and %.1f MiB after", float64(before)/(1<<20), float64(after)/(1<<20))
	if after-before > 32<<20 {
		t.Errorf("the server grew by %d MiB", (after-before)>>20)
	}
}

// memoryFree is how much memory the machine has for more processes, in bytes.
func memoryFree(t testing.TB) int64 {
	t.Helper()
	return kibibytes(t, "/proc/meminfo", "MemAvailable:")
}

// proportionalOf is a process's memory, of what is shared its share, in bytes.
func proportionalOf(t testing.TB, pid int) int64 {
	t.Helper()
	return kibibytes(t, fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss:")
}

// kibibytes reads a line of a file of the kernel's, in bytes.
func kibibytes(t testing.TB, file, name string) int64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(append([]byte("\n"), text...), []byte("\n"+name))
	fields := strings.Fields(string(rest))
	if len(fields) == 0 {
		t.Fatalf("%s has no %s", file, name)
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// processorTime is what a process has had, proc_pid_stat(5).
func processorTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	fields := strings.Fields(string(rest))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // of USER_HZ
}

// BenchmarkCell measures x + 1 in a session of each language, from a client's
// call to its answer over stdio.
func BenchmarkCell(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("the server is started as the tests for Linux do")
	}
	s := serve(b, b.TempDir(), "--warm=0")
	for _, says := range speeches {
		b.Run(says.language, func(b *testing.B) {
			session := createSession(b, s.session, says.language, nil)
			begin := "let x = 0"
			if says.language == "python" {
				begin = "x = 0"
			}
			if a := cell(b, s.session, session, says.language, begin); a.Status != "completed" {
				b.Fatalf("%+v", a)
			}
			for range 20 { // until it is compiled
				cell(b, s.session, session, says.language, "x + 1")
			}
			var took []time.Duration
			b.ResetTimer()
			for b.Loop() {
				start := time.Now()
				a := cell(b, s.session, session, says.language, "x + 1")
				took = append(took, time.Since(start))
				if string(a.Result) != "1" {
					b.Fatalf("%+v", a)
				}
			}
			b.StopTimer()
			slices.Sort(took)
			ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
			b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
			b.ReportMetric(ms(took[len(took)*99/100]), "p99-ms")
			use[fileAnswer](b, s.session, "destroy_session", map[string]any{"session_id": session})
		})
	}
}
