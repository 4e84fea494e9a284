package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor/job"
)

// runtimesOutput is list_runtimes' structured result.
type runtimesOutput struct {
	Rillbox  string        `json:"rillbox"`  // This server's own version
	Offline  bool          `json:"offline"`  // True when only what is cached can be used
	Runtimes []runtimeInfo `json:"runtimes"` // What runs programs here
	Limits   limitsInfo    `json:"limits"`   // What one run may use
}

type runtimeInfo struct {
	Languages   []string          `json:"languages"`   // What it runs
	Versions    map[string]string `json:"versions"`    // The exact version of each component
	Ready       bool              `json:"ready"`       // False while the first run still has to fetch the runtime
	Permissions []string          `json:"permissions"` // The Deno permission flags that programs have; an empty list means none
	Wall        string            `json:"wall"`        // The kernel's wall around programs: namespaces, landlock, deno or none
}

type limitsInfo struct {
	TimeoutSeconds        float64 `json:"timeout_seconds"`         // A run's time when timeout_seconds is not given
	MaxTimeoutSeconds     float64 `json:"max_timeout_seconds"`     // The most that timeout_seconds can be
	CPUs                  float64 `json:"cpus"`                    // Processors' worth of time that a program gets
	CPUTimeSeconds        float64 `json:"cpu_time_seconds"`        // Processor time that a program may use; 0 means as much as its time lets it
	InstallTimeoutSeconds float64 `json:"install_timeout_seconds"` // Time for fetching and installing packages, beside the run's own
	MemoryBytes           int64   `json:"memory_bytes"`            // Memory of a program, above what its runtime needs
	StdoutBytes           int64   `json:"stdout_bytes"`            // What is kept of stdout
	StderrBytes           int64   `json:"stderr_bytes"`            // What is kept of stderr
	ResultBytes           int64   `json:"result_bytes"`            // The largest value and error
	CodeBytes             int64   `json:"code_bytes"`              // The largest program
	StdinBytes            int64   `json:"stdin_bytes"`             // The largest standard input
	FileBytes             int64   `json:"file_bytes"`              // What a program may keep in its own directory, where it has one
	Running               int     `json:"running"`                 // How many runs go on at once; more wait
	Waiting               int     `json:"waiting"`                 // How many may wait; more are refused as busy
}

func (s *Server) listRuntimes(_ context.Context, _ *mcp.CallToolRequest, _ runtimesArgs) (*mcp.CallToolResult, error) {
	l := s.limits
	out := runtimesOutput{
		Rillbox: s.version,
		Offline: s.offline,
		Limits: limitsInfo{
			TimeoutSeconds:        l.Timeout.Seconds(),
			MaxTimeoutSeconds:     l.MaxTimeout.Seconds(),
			CPUs:                  l.CPUs,
			CPUTimeSeconds:        l.CPUTime.Seconds(),
			InstallTimeoutSeconds: l.InstallTimeout.Seconds(),
			MemoryBytes:           l.Memory,
			StdoutBytes:           l.Stdout,
			StderrBytes:           l.Stderr,
			ResultBytes:           l.Result,
			CodeBytes:             l.Code,
			StdinBytes:            l.Stdin,
			FileBytes:             l.Disk,
			Running:               l.Running,
			Waiting:               l.Waiting,
		},
		Runtimes: []runtimeInfo{},
	}
	for _, t := range s.supervisor.Toolchains() {
		d := t.Describe()
		info := runtimeInfo{job.LanguageNames(d.Languages), d.Versions, d.Ready, append([]string{}, d.Permissions...), d.Wall}
		if info.Versions == nil {
			info.Versions = map[string]string{}
		}
		out.Runtimes = append(out.Runtimes, info)
	}
	return answer(out, out.text()), nil
}

func (o runtimesOutput) text() string {
	var b strings.Builder
	for _, r := range o.Runtimes {
		var versions []string
		for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
			versions = append(versions, name+" "+r.Versions[name])
		}
		ready := "ready"
		if !r.Ready {
			ready = "not ready: the first run fetches it"
			if o.Offline {
				ready = "not ready: it is not in the cache, and this server is offline"
			}
		}
		fmt.Fprintf(&b, "%s: %s (%s; permissions: %s; wall: %s)\n", strings.Join(r.Languages, ", "),
			strings.Join(versions, ", "), ready, cmp.Or(strings.Join(r.Permissions, " "), "none"), r.Wall)
	}
	l := o.Limits
	processors := fmt.Sprintf("%v × a processor", l.CPUs)
	if l.CPUTimeSeconds > 0 {
		processors += fmt.Sprintf(", %v s of its time", l.CPUTimeSeconds)
	}
	fmt.Fprintf(&b, "limits: %v s by default and %v s at most, %v s more for packages; %s of memory; %s; %s kept of stdout, %s of stderr; %s for the value; %s of code, %s of stdin; %d runs at once, %d waiting\n",
		l.TimeoutSeconds, l.MaxTimeoutSeconds, l.InstallTimeoutSeconds, size(l.MemoryBytes), processors, size(l.StdoutBytes), size(l.StderrBytes),
		size(l.ResultBytes), size(l.CodeBytes), size(l.StdinBytes), l.Running, l.Waiting)
	network := "online: packages are fetched as needed"
	if o.Offline {
		network = "offline: only cached packages can be used"
	}
	fmt.Fprintf(&b, "%s\nrillbox %s\n", network, o.Rillbox)
	return b.String()
}
