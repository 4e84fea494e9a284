package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// ownPaths have something else than MCP.
var ownPaths = []string{"/healthz", "/readyz", "/metrics", "/status", "/page", "/.well-known"}

// endpointPath is the form of a path of the endpoint, in which the mux reads nothing else.
var endpointPath = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+$`)

// CheckPath says why MCP can't be at a path.
func CheckPath(at string) error {
	if !endpointPath.MatchString(at) || path.Clean(at) != at {
		return fmt.Errorf("%.80q can't be its path: want one such as /mcp, of letters, digits, dots, dashes, underscores and slashes", at)
	}
	for _, own := range ownPaths {
		if at == own || strings.HasPrefix(at, own+"/") {
			return fmt.Errorf("%.80q can't be its path: %s is the server's own", at, own)
		}
	}
	return nil
}

// hostName is the form of a name in a Host header; with *. for all names just below one.
var hostName = regexp.MustCompile(`^(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?$`)

// CheckHost says why no request is addressed to a name.
func CheckHost(name string) error {
	if !hostName.MatchString(name) {
		return fmt.Errorf("%.80q is no name of a host: want one such as rillbox.example.com, without scheme and port, or *.example.com", name)
	}
	return nil
}

// CheckOrigin says why no page has an origin.
func CheckOrigin(origin string) error {
	u, err := url.Parse(strings.TrimSuffix(origin, "/"))
	if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%.80q is no origin of a page: want one such as https://chat.example.com", origin)
	}
	if strings.Contains(u.Host, "*") || u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" || strings.HasSuffix(u.Host, ":") {
		return fmt.Errorf("no browser sends %.80q: want one whole origin, without the usual port, such as https://chat.example.com", origin)
	}
	return nil
}

func hostSet(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[strings.ToLower(strings.TrimSuffix(name, "."))] = true
	}
	return set
}

func originSet(origins []string) map[string]bool {
	set := map[string]bool{}
	for _, origin := range origins {
		set[strings.ToLower(strings.TrimSuffix(origin, "/"))] = true
	}
	return set
}

// hostOf is a Host header's name, without its port and brackets.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// checkHost refuses requests that came here by another's name: a page can have its own
// name mean this machine's address, and would then count as of the same origin. A
// number means what it says.
func (d *Door) checkHost(r *http.Request) *refusal {
	name := hostOf(r.Host)
	_, parent, _ := strings.Cut(name, ".")
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" || d.hosts[name] || d.hosts["*."+parent] {
		return nil
	}
	return refuse(http.StatusForbidden, "this server does not answer for the host %.80q: use the address that it printed, or have its operator add the name to http_hosts", r.Host)
}

// checkOnce refuses headers that decide something and are there several times: what is
// before us may go by another of them.
func checkOnce(r *http.Request) *refusal {
	for _, name := range []string{"Authorization", "Content-Encoding", "Content-Type", "Last-Event-Id", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", sessionHeader, "Origin", "Sec-Fetch-Site"} {
		if len(r.Header.Values(name)) > 1 {
			return refuse(http.StatusBadRequest, "send one header %s, not several", name)
		}
	}
	return nil
}

// checkWay refuses requests that should have come through the proxy which encrypts them.
// What asks for the health has no token, and is a part of the machine's.
func (d *Door) checkWay(r *http.Request) *refusal {
	if len(d.o.Proxies) == 0 || r.TLS != nil || d.isProxy(r) || r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
		return nil
	}
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || from.Addr().Unmap().IsLoopback() { // or a socket in the file system
		return nil
	}
	return refuse(http.StatusForbidden, "this server is reached through a proxy that encrypts: use the proxy's address, or have its operator add yours to behind_proxy")
}

// checkOrigin refuses requests of pages of other sites, and tells a browser that those
// of the operator's list may read the answer. A program that is no browser sends none.
func (d *Door) checkOrigin(w http.ResponseWriter, r *http.Request) *refusal {
	origin := r.Header.Get("Origin")
	if origin == "" {
		if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
			return refuse(http.StatusForbidden, "a page of another site sent this: its origin must be one of http_origins")
		}
		return nil
	}
	w.Header().Add("Vary", "Origin")
	listed := d.origins[strings.ToLower(origin)]
	if u, err := url.Parse(origin); !listed && (err != nil || u.Scheme != d.scheme(r) || !strings.EqualFold(u.Host, r.Host)) {
		return refuse(http.StatusForbidden, "pages of %.80q may not call this server: its operator can add the origin to http_origins", origin)
	}
	if listed {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, MCP-Protocol-Version, X-Request-Id, WWW-Authenticate, Retry-After")
	}
	return nil
}

// answerPreflight answers a browser that asks whether a page may call. checkOrigin has
// judged the page.
func answerPreflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "POST, GET, DELETE")
	h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}

// scheme is how the client reached us, or the proxy that is believed.
func (d *Door) scheme(r *http.Request) string {
	if d.isProxy(r) {
		if proto := r.Header.Get("X-Forwarded-Proto"); proto == "https" || proto == "http" {
			return proto
		}
	}
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// isProxy says that a request comes from a proxy that is believed.
func (d *Door) isProxy(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	for _, prefix := range d.o.Proxies {
		if prefix.Contains(from.Addr().Unmap()) {
			return true
		}
	}
	return false
}
