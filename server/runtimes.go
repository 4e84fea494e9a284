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
	// Limits are what one run may use. Their names say what they are.
	Limits map[string]float64 `json:"limits"`
}

type runtimeInfo struct {
	Languages   []string          `json:"languages"`   // What it runs
	Versions    map[string]string `json:"versions"`    // The exact version of each component
	Ready       bool              `json:"ready"`       // False while the first run still has to fetch the runtime
	Permissions []string          `json:"permissions"` // The Deno permission flags that programs have; an empty list means none
	Wall        string            `json:"wall"`        // The kernel's wall around programs: namespaces, landlock, deno or none
	// NotFetched are those of its languages that their first program fetches; Licenses those
	// of what is fetched.
	NotFetched []string          `json:"not_fetched,omitempty"`
	Licenses   map[string]string `json:"licenses,omitempty"`
}

func (s *Server) listRuntimes(ctx context.Context, _ *mcp.CallToolRequest, _ runtimesArgs) (*mcp.CallToolResult, error) {
	out, limits := s.runtimes(clientOf(ctx))
	return answer(out, out.text(limits)), nil
}

// runtimes is what programs of a client have.
func (s *Server) runtimes(client string) (runtimesOutput, job.Limits) {
	l, terms := s.limits, s.o.Supervisor.TermsOf(client)
	l.Timeout, l.MaxTimeout = min(l.Timeout, terms.Timeout), terms.Timeout
	out := runtimesOutput{
		Rillbox: s.o.Version,
		Offline: s.o.Offline,
		Limits: map[string]float64{
			"timeout_seconds":         l.Timeout.Seconds(),
			"max_timeout_seconds":     l.MaxTimeout.Seconds(),
			"cpus":                    l.CPUs,
			"cpu_time_seconds":        l.CPUTime.Seconds(), // 0: as much as its time lets it
			"install_timeout_seconds": l.InstallTimeout.Seconds(),
			"memory_bytes":            float64(l.Memory),
			"stdout_bytes":            float64(l.Stdout),
			"stderr_bytes":            float64(l.Stderr),
			"result_bytes":            float64(l.Result),
			"code_bytes":              float64(l.Code),
			"stdin_bytes":             float64(l.Stdin),
			"file_bytes":              float64(l.Disk), // of its own directory
			"running":                 float64(l.Running),
			"waiting":                 float64(l.Waiting),
		},
		Runtimes: []runtimeInfo{},
	}
	for _, t := range s.o.Supervisor.Toolchains() {
		d := t.Describe()
		info := runtimeInfo{
			Languages: job.LanguageNames(d.Languages), Versions: d.Versions, Ready: d.Ready,
			Permissions: append([]string{}, d.Permissions...), Wall: d.Wall,
		}
		for _, name := range d.Missing {
			info.NotFetched = append(info.NotFetched, string(name))
		}
		for _, l := range d.Languages {
			if l.License != "" {
				if info.Licenses == nil {
					info.Licenses = map[string]string{}
				}
				info.Licenses[string(l.Name)] = l.License
			}
		}
		if most := terms.Permissions[d.Languages[0].Name]; most != nil {
			info.Permissions = most
		}
		if info.Versions == nil {
			info.Versions = map[string]string{}
		}
		out.Runtimes = append(out.Runtimes, info)
	}
	return out, l
}

func (o runtimesOutput) text(l job.Limits) string {
	var b strings.Builder
	for _, r := range o.Runtimes {
		var versions []string
		for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
			version := name + " " + r.Versions[name]
			if license := r.Licenses[name]; license != "" {
				version += " [" + license + "]"
			}
			versions = append(versions, version)
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
		if len(r.NotFetched) > 0 {
			when := "their first program fetches them"
			if o.Offline {
				when = "and this server is offline"
			}
			fmt.Fprintf(&b, "not here yet: %s (%s)\n", strings.Join(r.NotFetched, ", "), when)
		}
	}
	processors := fmt.Sprintf("%v × a processor", l.CPUs)
	if l.CPUTime > 0 {
		processors += fmt.Sprintf(", %s of its time", seconds(l.CPUTime))
	}
	fmt.Fprintf(&b, "limits: %s by default and %s at most, %s more for packages; %s of memory; %s; %s kept of stdout, %s of stderr; %s for the value; %s of code, %s of stdin; %d runs at once, %d waiting\n",
		seconds(l.Timeout), seconds(l.MaxTimeout), seconds(l.InstallTimeout), size(l.Memory), processors, size(l.Stdout), size(l.Stderr),
		size(l.Result), size(l.Code), size(l.Stdin), l.Running, l.Waiting)
	network := "online: packages are fetched as needed"
	if o.Offline {
		network = "offline: only cached packages can be used"
	}
	fmt.Fprintf(&b, "%s\nrillbox %s\n", network, o.Rillbox)
	return b.String()
}
