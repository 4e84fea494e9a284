//go:build !windows

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"rillbox/supervisor"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// probe runs a language's probes without any grant. What the probe says is
// checked against what can be seen from here.
func probe(ctx context.Context, s *supervisor.Supervisor, language job.LanguageInfo) []check {
	checks, err := probeGrants(ctx, s, language)
	if err != nil {
		return append(checks, check{Name: string(language.Name) + ": the probe", Problem: err.Error()})
	}
	return append(checks, probeTimeout(ctx, s, language))
}

func probeGrants(ctx context.Context, s *supervisor.Supervisor, language job.LanguageInfo) ([]check, error) {
	dir, err := os.MkdirTemp("", "rillbox-probe-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	secret, forbidden := filepath.Join(dir, "secret.txt"), filepath.Join(dir, "written.txt")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		return nil, err
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	const variable = "RILLBOX_PROBE" // a program must not see it
	if err := os.Setenv(variable, "secret"); err != nil {
		return nil, err
	}
	defer os.Unsetenv(variable)

	program := job.Program{
		Language: language.Name, Code: language.Probe, Permissions: []string{},
		Args: []string{secret, forbidden, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port), variable},
	}
	result, err := s.Run(ctx, program, supervisor.Call{Streams: job.Streams{Emit: func(job.Event) {}}})
	checks := []check{{Name: string(language.Name) + ": a program runs", Problem: broken(result, err)}}
	if checks[0].Problem == "" {
		var outcome map[string]string
		if err := json.Unmarshal(result.Value, &outcome); err != nil || len(outcome) == 0 {
			return checks, fmt.Errorf("its value is %s, not what became of its attempts", result.Value)
		}
		if _, err := os.Stat(forbidden); err == nil {
			outcome["write a file"] = ""
		}
		if err := listener.SetDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			return checks, err
		}
		if conn, err := listener.Accept(); err == nil {
			conn.Close()
			outcome["connect to the network"] = ""
		}
		for _, attempt := range slices.Sorted(maps.Keys(outcome)) {
			c := check{Name: string(language.Name) + ": cannot " + attempt, Detail: "refused: " + outcome[attempt]}
			if outcome[attempt] == "" {
				c.Problem, c.Advice = "a program without any grant could do it", "do not run programs of others here, and report this"
			}
			checks = append(checks, c)
		}
	}
	if runtime.GOOS == "linux" {
		checks = append(checks, probeFilter(ctx, s, program))
	}
	return checks, nil
}

// probeFilter runs the program once more and names the system calls that the
// filter around it refused: Deno's own permissions refuse earlier, so these are
// calls that the runtime makes on this machine, and that are not known here.
func probeFilter(ctx context.Context, s *supervisor.Supervisor, program job.Program) check {
	c := check{Name: string(program.Language) + ": the system call filter lets its runtime work", Lesser: true}
	var mu sync.Mutex
	var refused []string
	launcher.ReportRefused(func(call string) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(refused, call) {
			refused = append(refused, call)
		}
	})
	defer launcher.ReportRefused(nil)
	result, err := s.Run(ctx, program, supervisor.Call{Streams: job.Streams{Emit: func(job.Event) {}}})
	mu.Lock()
	defer mu.Unlock()
	c.Problem = broken(result, err)
	if len(refused) > 0 {
		c.Problem, c.Advice = "it refused "+strings.Join(refused, ", "), "report this: a part of the language may not work"
	}
	return c
}

// probeTimeout checks that a program that never ends is ended.
func probeTimeout(ctx context.Context, s *supervisor.Supervisor, language job.LanguageInfo) check {
	c := check{Name: string(language.Name) + ": a program that never ends is ended"}
	start := time.Now()
	result, err := s.Run(ctx, job.Program{
		Language: language.Name, Code: language.Endless, Timeout: time.Second,
	}, supervisor.Call{Streams: job.Streams{Emit: func(job.Event) {}}})

	switch {
	case err != nil:
		c.Problem = err.Error()
	case result.Status != job.TimedOut:
		c.Problem = fmt.Sprintf("its status is %s, not %s", result.Status, job.TimedOut)
	default:
		c.Detail = fmt.Sprintf("after %.1f s", time.Since(start).Seconds())
	}
	return c
}

// broken says why a probe did not run to its end; empty when it did.
func broken(r job.Result, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case r.Error != nil:
		return r.Error.Name + ": " + r.Error.Message
	case r.Status != job.Completed:
		return fmt.Sprintf("it ended as %s, with exit code %d: %s", r.Status, r.ExitCode, r.Stderr.String())
	}
	return ""
}
