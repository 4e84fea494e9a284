//go:build linux

// Load puts many clients on one `rillbox serve --http` on loopback and, in turn with it,
// as many calls in flight on one over standard input and output. It prints, as Markdown,
// how many calls each answers in a second, how long they take, and what memory the server
// has.
//
//	go run ./scripts/load [--for 10m] [--clients 64] [--hostile] [--idle 5000]
//
// It fails when an answer is wrong, lost or another call's, when the server's memory grows,
// or when an idle client is cut off. The throughput is told and judged, but does not make it
// fail: that needs a machine that does nothing else. It ends at most 30 s after its time,
// whatever the servers do. Building the program, and `rillbox setup`, come before.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// options are the flags.
type options struct {
	program string
	lasts   time.Duration
	clients int
	hostile bool
	idle    int
}

// good is how many clients behave.
func (o options) good() int {
	if o.hostile {
		return o.clients / 2
	}
	return o.clients
}

const (
	// slice is how long one server is called before the other one is: whatever else the
	// machine does meanwhile comes to both.
	slice = 15 * time.Second
	// lateTime is how long after the end calls may be answered, endTime how long servers
	// may take to end, and lastTime when the end is forced.
	lateTime = 15 * time.Second
	endTime  = 10 * time.Second
	lastTime = 28 * time.Second
)

func main() {
	var o options
	flag.StringVar(&o.program, "rillbox", "", "the program to try; empty builds it")
	flag.DurationVar(&o.lasts, "for", time.Minute, "how long all of it lasts")
	flag.IntVar(&o.clients, "clients", 64, "clients that call at once")
	flag.BoolVar(&o.hostile, "hostile", false, "half of the clients over HTTP misbehave")
	flag.IntVar(&o.idle, "idle", 0, "clients that do nothing meanwhile: each has a connection, a protocol session and its open stream")
	flag.Parse()
	if err := buildAndRun(o); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func buildAndRun(o options) error {
	dir, err := os.MkdirTemp("", "rillbox-load-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.program == "" {
		o.program = filepath.Join(dir, "rillbox")
		if out, err := exec.Command("go", "build", "-o", o.program, "rillbox/cmd/rillbox").CombinedOutput(); err != nil {
			return fmt.Errorf("go build: %w: %s", err, out)
		}
	}
	if out, err := exec.Command(o.program, "setup").CombinedOutput(); err != nil {
		return fmt.Errorf("rillbox setup: %w: %s", err, out)
	}
	end := time.Now().Add(o.lasts)
	http, err := startHTTP(o, dir)
	if err != nil {
		return err
	}
	defer http.kill()
	stdio, err := startStdio(o)
	if err != nil {
		return err
	}
	defer stdio.kill()
	ended := make(chan error, 1)
	go func() { ended <- run(o, end, http, stdio) }()
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Until(end) + lastTime):
		return fmt.Errorf("a call or a server did not end within %v of the time; the servers were killed", lastTime)
	}
}

// run has the clients call both servers in turn until the end, and reports.
func run(o options, end time.Time, http, stdio *server) error {
	ctx, cancel := context.WithDeadline(context.Background(), end.Add(lateTime))
	defer cancel()
	for _, s := range []*server{http, stdio} {
		if err := s.open(ctx); err != nil {
			return err
		}
	}
	var idle *idleClients
	if o.idle > 0 {
		var err error
		if idle, err = openIdle(http, o.idle); err != nil {
			return err
		}
	}
	for turn := 0; time.Now().Before(end); turn++ {
		lasts := min(slice, o.lasts/4, time.Until(end))
		if turn%2 == 1 {
			stdio.call(ctx, o.good(), lasts)
			continue
		}
		meanwhile, stop := context.WithCancel(ctx)
		var bad sync.WaitGroup
		for i := o.good(); i < o.clients; i++ {
			bad.Go(func() { http.misbehave(meanwhile, i) })
		}
		http.call(ctx, o.good(), lasts)
		stop()
		bad.Wait()
	}
	return report(o, http, stdio, idle)
}

// report prints what was measured, ends the servers, and says what is not as it must be.
func report(o options, http, stdio *server, idle *idleClients) error {
	fmt.Printf("%d clients, %v, %d processors\n\n", o.clients, o.lasts, runtime.NumCPU())
	fmt.Println("| | calls/s | wrong or lost | JavaScript p50, p99 (the program alone) | Python p50, p99 (the program alone) | memory in each quarter |")
	fmt.Println("| --- | --- | --- | --- | --- | --- |")
	var wrong []error
	for _, s := range []*server{http, stdio} {
		fmt.Printf("| %s, %d in flight | %.1f | %d of %d | %v | %v | %s |\n",
			s.name, o.good(), s.rate(), len(s.bad), s.calls+len(s.bad), s.took["javascript"], s.took["python"], mebibytes(s.memory.quarters()))
		if len(s.bad) > 0 {
			wrong = append(wrong, fmt.Errorf("%s: %d answers are wrong or lost: %s", s.name, len(s.bad), s.bad[0]))
		}
		if s.calls == 0 {
			wrong = append(wrong, fmt.Errorf("%s: no call was answered", s.name))
		}
		if s.refused > 0 {
			fmt.Printf("\n%s told %d calls to try again.\n", s.name, s.refused)
		}
		if grew, most := s.memory.growth(); grew > most {
			wrong = append(wrong, fmt.Errorf("%s: the server's memory grew by %d MiB, and %d are allowed", s.name, grew>>20, most>>20))
		}
	}
	part, share, who := http.rate()/stdio.rate(), 1.0, "HTTP has"
	if o.hostile {
		share, who = 0.5, "The honest half over HTTP has"
	}
	verdict := "too little" // also where one answered nothing
	if part >= 0.9*share {
		verdict = "as it must be"
	}
	fmt.Printf("\n%s %.2f of stdio's throughput with as many in flight: %s (0.9 of a share of %.1f).\n", who, part, verdict, share)
	if o.hostile {
		fmt.Printf("The hostile half did, and was told: %v.\n", &http.deeds)
	}
	if idle != nil {
		open := idle.open()
		fmt.Printf("%d idle clients took %d kB each. At the end %d of them were connected.\n", o.idle, idle.each>>10, open)
		if open < o.idle {
			wrong = append(wrong, fmt.Errorf("%d idle clients were cut off", o.idle-open))
		}
	}
	return errors.Join(append(wrong, http.end(), stdio.end())...)
}
