//go:build !windows

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

const (
	// answerTime is how long a server may take for one answer.
	answerTime = 10 * time.Second
	// soon is when a certificate's end is worth a word.
	soon = 14 * 24 * time.Hour
)

// remote is a server that is examined over HTTP.
type remote struct {
	url    *url.URL
	token  string
	client *http.Client
}

// examineHTTP says what a running server offers and lacks. What it says of itself is shown
// in lines of one kind, whatever it is.
func (a *app) examineHTTP(ctx context.Context, address string) ([]check, error) {
	checks, err := a.askHTTP(ctx, address)
	const most = 1000 // bytes
	for i, c := range checks {
		checks[i].Name, checks[i].Detail, checks[i].Problem = job.ShowLine(c.Name, most), job.ShowLine(c.Detail, most), job.ShowLine(c.Problem, most)
	}
	return checks, err
}

func (a *app) askHTTP(ctx context.Context, address string) ([]check, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, usageError{fmt.Errorf("http: %.200q is no address of a server: want one such as https://rillbox.example.com/mcp", address)}
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/mcp"
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	r := &remote{u, a.config.HTTP.Token, &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token is for this server
	}}
	defer r.client.CloseIdleConnections()
	reach := check{Name: "reachable"}
	start := time.Now()
	answer, body, err := r.post(ctx, "")
	if err != nil {
		reach.Problem, reach.Advice = unreachable(err, u)
		return []check{reach}, nil
	}
	reach.Detail = fmt.Sprintf("%s answers after %v", u.Redacted(), time.Since(start).Round(time.Millisecond/10))
	checks := []check{reach, encryption(answer.TLS, u, time.Now())}
	asked, ok := r.authentication(ctx, answer, body)
	if checks = append(checks, asked); !ok {
		return checks, nil
	}
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		checks = append(checks, r.converse(ctx, version)...)
	}
	return checks, nil
}

// post sends a hello of the older era, which every MCP server over HTTP answers.
func (r *remote) post(ctx context.Context, token string) (*http.Response, string, error) {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"rillbox doctor","version":"1"}}}`
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url.String(), strings.NewReader(hello))
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := r.client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if session := answer.Header.Get("Mcp-Session-Id"); session != "" { // it is not wanted any more
		if end, err := http.NewRequestWithContext(ctx, http.MethodDelete, r.url.String(), nil); err == nil {
			end.Header = request.Header.Clone()
			end.Header.Set("Mcp-Session-Id", session)
			if gone, err := r.client.Do(end); err == nil {
				_ = gone.Body.Close()
			}
		}
	}
	return answer, string(body), err
}

// unreachable says why there was no answer.
func unreachable(err error, u *url.URL) (problem, advice string) {
	var record tls.RecordHeaderError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var dns *net.DNSError
	switch {
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "the server speaks no TLS, and the URL says https", "use http:// if it is on this machine or behind a proxy, or give it tls_cert and tls_key"
	case errors.As(err, &unknown):
		return "its certificate is signed by nobody whom this machine trusts", "SSL_CERT_FILE names a file with the certificate of who signed it"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("its certificate ended on %s", invalid.Cert.NotAfter.UTC().Format(time.DateOnly)), "renew it"
	case errors.As(err, &invalid):
		return "its certificate is not valid: " + invalid.Error(), "give the server another one"
	case errors.As(err, &name):
		return fmt.Sprintf("its certificate is for %s, not %s", strings.Join(name.Certificate.DNSNames, ", "), u.Hostname()), "use one of these names"
	case errors.As(err, &dns):
		return fmt.Sprintf("there is no host %s", u.Hostname()), "look at the name"
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("%s did not answer within %v", u.Host, answerTime), "is it a server of HTTP, and does a firewall let you through?"
	}
	return fmt.Sprintf("%s can't be reached: %v", u.Host, errors.Unwrap(err)), "`rillbox serve --http` says where it listens"
}

// encryption says what TLS there is, and until when its certificate holds.
func encryption(state *tls.ConnectionState, u *url.URL, now time.Time) check {
	c := check{Name: "TLS"}
	switch {
	case state == nil:
		c.Detail = "none, on this machine alone"
		if !isLocal(u) {
			c.Problem, c.Advice = "none: tokens, programs and results can be read on the way", "give the server tls_cert and tls_key, or put a proxy before it"
		}
	case len(state.PeerCertificates) > 0:
		end := state.PeerCertificates[0].NotAfter
		c.Detail = fmt.Sprintf("%s, its certificate holds until %s", tls.VersionName(state.Version), end.UTC().Format(time.DateOnly))
		if end.Sub(now) < soon {
			c.Problem, c.Lesser, c.Advice = fmt.Sprintf("its certificate ends on %s", end.UTC().Format(time.DateOnly)), true, "renew it"
		}
	}
	return c
}

// isLocal says that only this machine can reach an address.
func isLocal(u *url.URL) bool {
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// authentication says whether the server asks who calls, by its answer to a hello without
// a token, and whether it is content with the token.
func (r *remote) authentication(ctx context.Context, answer *http.Response, body string) (c check, ok bool) {
	c = check{Name: "authentication"}
	var err error
	if answer.StatusCode == http.StatusUnauthorized {
		if r.token == "" {
			c.Problem, c.Lesser, c.Advice = "it asks for a token", true, "set RILLBOX_AUTH_TOKEN to look further"
			return c, false
		}
		c.Detail = "asked for, and the token holds"
		if answer, body, err = r.post(ctx, r.token); err == nil && answer.StatusCode == http.StatusUnauthorized {
			c.Problem, c.Advice = "the token of RILLBOX_AUTH_TOKEN does not hold", "ask the operator for another"
			return c, false
		}
	} else {
		c.Detail = "none"
		if !isLocal(r.url) {
			c.Problem, c.Advice = "none: whoever reaches it can run programs there", "set RILLBOX_AUTH_TOKEN where the server starts"
		}
	}
	said := refusalOf(body)
	switch {
	case err != nil:
		c.Problem = fmt.Sprintf("it did not answer a second time: %v", err)
	case answer.StatusCode == http.StatusOK && strings.Contains(body, `"protocolVersion"`):
		return c, true
	case answer.StatusCode == http.StatusOK:
		c = check{Name: "MCP", Problem: fmt.Sprintf("what is at %s is no MCP server: it answers %s", r.url.Path, answer.Header.Get("Content-Type")), Advice: "look at the address and the port"}
	case answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusMethodNotAllowed:
		c = check{Name: "MCP", Problem: fmt.Sprintf("MCP is not at %s%s", r.url.Path, said), Advice: "the server's log has its URL; http_path is the setting"}
	case answer.StatusCode == http.StatusBadRequest && answer.TLS == nil && strings.Contains(body, "HTTPS server"): // so says net/http's
		c = check{Name: "MCP", Problem: "it speaks TLS, and the URL says http", Advice: "use https://"}
	case answer.StatusCode >= 300 && answer.StatusCode < 400:
		c = check{Name: "MCP", Problem: fmt.Sprintf("it sends you to %.200s", answer.Header.Get("Location")), Advice: "name that address"}
	default:
		c = check{Name: "MCP", Problem: "it refuses: " + answer.Status + said}
	}
	return c, false
}

// refusalOf is what a body says went wrong, after a colon.
func refusalOf(body string) string {
	var refused struct {
		Error struct{ Message string }
	}
	if json.Unmarshal([]byte(body), &refused) != nil || refused.Error.Message == "" {
		return ""
	}
	return ": " + refused.Error.Message
}

// converse speaks one era of the protocol with the server.
func (r *remote) converse(ctx context.Context, version string) []check {
	c := check{Name: "MCP " + version}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	transport := &mcp.StreamableClientTransport{Endpoint: r.url.String(), HTTPClient: &http.Client{Transport: bearing{r.client.Transport, r.token}}, MaxRetries: -1, DisableStandaloneSSE: true}
	client := mcp.NewClient(&mcp.Implementation{Name: "rillbox doctor", Version: version}, nil)
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		c.Problem = fmt.Sprintf("it does not answer: %v", err)
		return []check{c}
	}
	defer session.Close()
	hello := session.InitializeResult()
	if hello.ProtocolVersion != version {
		c.Problem, c.Lesser = fmt.Sprintf("it speaks %s instead", hello.ProtocolVersion), true
		return []check{c}
	}
	start := time.Now()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		c.Problem = fmt.Sprintf("its tools can't be listed: %v", err)
		return []check{c}
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	c.Detail = fmt.Sprintf("%s %s, %d tools in %v", hello.ServerInfo.Name, hello.ServerInfo.Version, len(names), time.Since(start).Round(time.Millisecond/10))
	if !slices.Contains(names, "run_code") {
		c.Problem, c.Lesser = "there is no run_code among its tools: "+strings.Join(names, ", "), true
		return []check{c}
	}
	if version < "2026-07-28" {
		return []check{c} // what follows is the same
	}
	if !slices.Contains(names, "list_runtimes") {
		return []check{c, {Name: "languages", Problem: "not told, for list_runtimes is not among its tools", Lesser: true, Advice: "allow_tools and deny_tools of the server, or of the token, say which there are"}}
	}
	return append([]check{c}, runtimes(ctx, session)...)
}

// runtimes says what the server runs, behind which wall.
func runtimes(ctx context.Context, session *mcp.ClientSession) []check {
	answer, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "list_runtimes", Arguments: map[string]any{}})
	c := check{Name: "languages"}
	if err != nil {
		c.Problem = err.Error()
		return []check{c}
	}
	var told struct {
		Offline  bool
		Runtimes []struct {
			Languages []string
			Versions  map[string]string
			Ready     bool
			Wall      string
		}
	}
	text, err := json.Marshal(answer.StructuredContent)
	if err == nil {
		err = json.Unmarshal(text, &told)
	}
	if err != nil || len(told.Runtimes) == 0 {
		c.Problem = "list_runtimes tells of none"
		return []check{c}
	}
	var checks []check
	for _, runtime := range told.Runtimes {
		c := check{Name: strings.Join(runtime.Languages, ", "), Detail: versions(job.Description{Versions: runtime.Versions}) + ", wall " + runtime.Wall}
		switch {
		case !runtime.Ready && told.Offline:
			c.Problem, c.Advice = "not set up, and the server is offline", "`rillbox setup` fetches it into the server's cache, while there is a network"
		case !runtime.Ready:
			c.Problem, c.Lesser, c.Advice = "not set up yet", true, "the first program fetches what it needs"
		case runtime.Wall != launcher.Namespaces.String():
			c.Problem, c.Lesser, c.Advice = "the wall around its programs is "+runtime.Wall, true, "`rillbox doctor` on that machine says why"
		}
		checks = append(checks, c)
	}
	return checks
}

// bearing sends requests with a token.
type bearing struct {
	http.RoundTripper
	token string
}

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.RoundTripper.RoundTrip(r)
}
