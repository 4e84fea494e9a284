package sandbox

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// playEnd says that it is about to end, and then ends in the way that how names.
func playEnd(how, code string) int {
	memory := make([]byte, 64<<20) // whose end takes the kernel some milliseconds
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
	status, _ := strconv.Atoi(code)
	_, _ = os.NewFile(3, "frames").WriteString("end\n")
	_, _ = os.Stdin.Read(memory[:1]) // what follows is as fast as a child that ends can be
	switch how {
	case "at once":
		fmt.Print("last words")
	case "late":
		time.Sleep(50 * time.Millisecond) // longer than ExpectEnd waits
		fmt.Print("last words")
	case "with threads":
		for range 8 {
			go func() {
				for n := uint64(1); n != 0; n++ {
				}
			}()
		}
		fmt.Print("last words")
	case "by a signal":
		fmt.Print("last words")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return status
}

// A child that says it ends may do what it likes instead: how it ended, and all
// that it has written, is what the kernel says of it.
func TestExpectedEndIsTheKernels(t *testing.T) {
	needWall(t, launcher.Landlock)
	for _, how := range []string{"at once", "late", "with threads", "by a signal"} {
		t.Run(how, func(t *testing.T) {
			early := 0
			for code := range 12 {
				level := launcher.Best.Offered()
				if how == "by a signal" { // the first process of a PID namespace can't send itself one
					level = launcher.Landlock
				}
				c := start(t, job.DefaultLimits(), &launcher.Wall{Level: level}, "end", how, strconv.Itoa(code))
				c.Attach(t.Context(), func(job.Event) {})
				frames := bufio.NewReader(c.Frames())
				line, err := frames.ReadString('\n')
				if err != nil || line != "end\n" {
					t.Fatal(line, err)
				}
				c.MarkBaseline()
				_ = c.Stdin().Close()
				c.ExpectEnd()
				rest, err := io.ReadAll(frames)
				if err != nil || len(rest) > 0 {
					t.Errorf("after its last frame came %q, %v", rest, err)
				}
				exit := c.Wait()
				select {
				case <-c.Ended():
				default:
					early++
				}
				want := Exit{Status: job.Failed, Code: code}
				switch {
				case how == "by a signal":
					want = Exit{Status: job.Crashed, Code: 137}
				case code == 0:
					want.Status = job.Completed
				}
				if exit.Status != want.Status || exit.Code != want.Code || exit.Stdout.String() != "last words" {
					t.Errorf("exit code %d: ended with %v, %d, %q", code, exit.Status, exit.Code, exit.Stdout.String())
				}
				if exit.CPU <= 0 || exit.PeakMemory < 64<<20 {
					t.Errorf("CPU %v, peak memory %d", exit.CPU, exit.PeakMemory)
				}
				<-c.Ended()
				if !gone(c.pid()) {
					t.Error("its process is there")
				}
			}
			if how == "at once" && early == 0 && decidedStatus() {
				t.Error("no end was known before the kernel had freed the memory")
			}
		})
	}
}

// A process's name may be anything, and is in the middle of its stat file.
func TestStatFieldsCountFromTheName(t *testing.T) {
	fields := make([]string, 50) // 3 to 52
	for i := range fields {
		fields[i] = strconv.Itoa(i + 3)
	}
	text := "1 () R 2) " + strings.Join(fields, " ") + "\n"
	for _, number := range []int{statFlags, statStartStack, statExitCode} {
		if value, ok := parseStat([]byte(text), number); !ok || value != uint64(number) {
			t.Errorf("field %d is %d, %v", number, value, ok)
		}
	}
	for _, text := range []string{"", ")", "1 (a) R", "1 (a", strings.Repeat("x ", 60)} {
		if value, ok := parseStat([]byte(text), statExitCode); ok {
			t.Errorf("%q has the exit code %d", text, value)
		}
	}
}
