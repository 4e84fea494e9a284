//go:build linux

// Load puts many clients on one `rillbox serve --http` on loopback and, in turn with
// it, as many calls in flight on one over standard input and output. It prints how many
// calls each answers in a second, how long they take and what memory the server has, and
// fails when an answer is lost or another's, when the memory grows, or when HTTP takes
// more than a tenth of the throughput.
//
//	go run ./scripts/load [--for 10m] [--clients 64] [--hostile] [--idle 5000]
//
// What it needs is in the cache after `rillbox setup`.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
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
	least   float64
}

func main() {
	var o options
	flag.StringVar(&o.program, "rillbox", "", "the program to try; empty builds it")
	flag.DurationVar(&o.lasts, "for", time.Minute, "how long the calls go on, over both doors together")
	flag.IntVar(&o.clients, "clients", 64, "clients that call at once")
	flag.BoolVar(&o.hostile, "hostile", false, "half of the clients over HTTP misbehave")
	flag.IntVar(&o.idle, "idle", 0, "connections, and as many protocol sessions, that do nothing meanwhile")
	flag.Float64Var(&o.least, "least", 0.9, "the throughput over HTTP that is enough, as a part of that over stdio")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// slice is how long one door is called before the other one is: whatever else the
// machine does meanwhile comes to both.
const slice = 15 * time.Second

func run(o options) error {
	if o.program == "" {
		dir, err := os.MkdirTemp("", "rillbox-load-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.program = filepath.Join(dir, "rillbox")
		if out, err := exec.Command("go", "build", "-o", o.program, "rillbox/cmd/rillbox").CombinedOutput(); err != nil {
			return fmt.Errorf("go build: %w: %s", err, out)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	http, err := openHTTP(ctx, o)
	if err != nil {
		return err
	}
	defer http.close()
	stdio, err := openStdio(ctx, o)
	if err != nil {
		return err
	}
	defer stdio.close()
	doors := []*door{http, stdio}
	for _, d := range doors { // what stays for the life of a server is made now
		if err := d.call(ctx, o.clients, 3*time.Second); err != nil {
			return err
		}
		d.measured = measured{}
	}
	if o.idle > 0 {
		if err := http.holdIdle(ctx, o.idle); err != nil {
			return err
		}
	}
	for _, d := range doors {
		d.memory.forget()
	}
	slices := max(1, int(o.lasts/2/slice))
	for range slices {
		for _, d := range doors {
			good := o.clients
			var bad sync.WaitGroup
			meanwhile, stop := context.WithCancel(ctx)
			if o.hostile && d == http {
				good /= 2
				for i := range o.clients - good {
					bad.Go(func() { http.misbehave(meanwhile, i) })
				}
			}
			err := d.call(ctx, good, o.lasts/2/time.Duration(slices))
			stop()
			bad.Wait()
			if err != nil {
				return err
			}
		}
	}
	return report(o, http, stdio)
}

// report prints the table, and says what is not as it must be.
func report(o options, http, stdio *door) error {
	fmt.Printf("%d clients, %v on %d processors\n\n", o.clients, o.lasts, runtime.NumCPU())
	fmt.Printf("%-6s %8s %8s %6s %6s %8s  %-28s %-28s %s\n", "door", "calls", "calls/s", "wrong", "lost", "refused", "JavaScript p50, p99 (alone)", "Python p50, p99 (alone)", "memory, by quarters")
	var wrong []error
	for _, d := range []*door{http, stdio} {
		js, py := d.took["js"], d.took["python"]
		fmt.Printf("%-6s %8d %8.1f %6d %6d %8d  %-28s %-28s %s\n", d.name, d.calls, d.rate(), len(d.wrong), len(d.lost), d.refused, js, py, megabytes(d.memory.quarters()))
		if len(d.wrong)+len(d.lost) > 0 {
			wrong = append(wrong, fmt.Errorf("%s: %d answers are wrong and %d lost: %s", d.name, len(d.wrong), len(d.lost), strings.Join(append(d.wrong, d.lost...)[:1], "")))
		}
		if d.calls == 0 {
			wrong = append(wrong, fmt.Errorf("%s: no call was answered", d.name))
		}
		if grew := d.memory.growth(); grew > mostGrowth {
			wrong = append(wrong, fmt.Errorf("%s: the server's memory grew by %d MiB", d.name, grew>>20))
		}
	}
	part := http.rate() / stdio.rate()
	switch {
	case o.hostile:
		fmt.Printf("\nHalf of the clients over HTTP misbehaved: %s\n", http.deeds.String())
	default:
		fmt.Printf("\nHTTP has %.2f of stdio's throughput.\n", part)
		if part < o.least {
			wrong = append(wrong, fmt.Errorf("HTTP has %.2f of stdio's throughput, and %.2f is wanted", part, o.least))
		}
	}
	if o.idle > 0 {
		fmt.Println(http.idleText)
	}
	return errors.Join(wrong...)
}

// megabytes lists sizes.
func megabytes(sizes []int64) string {
	var text bytes.Buffer
	for _, size := range sizes {
		fmt.Fprintf(&text, "%d ", size>>20)
	}
	return text.String() + "MiB"
}
