package web

import (
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/server"
	"rillbox/supervisor"
)

func tokenOf(name string) Token {
	return Token{SHA256: sha256.Sum256([]byte("secret-" + name)), Identity: Identity{Name: name}}
}

func TestTokensThatStayAreNotRevoked(t *testing.T) {
	var set TokenSet
	a, b := tokenOf("a"), tokenOf("b")
	set.Replace([]Token{a, b})
	first, ok := set.Identify(t.Context(), "secret-a")
	if !ok || first.Name != "a" {
		t.Fatalf("%+v %v", first, ok)
	}
	second, _ := set.Identify(t.Context(), "secret-b")
	changed := b
	changed.Identity.Terms = supervisor.Terms{Sessions: 1}
	set.Replace([]Token{changed, a})
	if again, ok := set.Identify(t.Context(), "secret-a"); !ok || first.Revoked.Err() != nil || again.Revoked != first.Revoked {
		t.Error("a token that stayed was revoked")
	}
	if second.Revoked.Err() == nil || set.Terms("b").Sessions != 1 {
		t.Error("a token that may do something else now goes on as it was")
	}
	set.Replace([]Token{b})
	if _, ok := set.Identify(t.Context(), "secret-a"); ok || first.Revoked.Err() == nil {
		t.Error("a token that was removed holds")
	}
	set.Replace([]Token{changed})
	set.Replace(nil)
	if set.Terms("b").Sessions != 1 {
		t.Error("a call of a removed token's that was on its way has all that the settings allow")
	}
	set.Replace([]Token{b})
	for _, token := range []string{"", "secret", "secret-b ", "Secret-b", "secret-b\x00"} {
		if i, ok := set.Identify(t.Context(), token); ok {
			t.Errorf("%q is of %s", token, i.Name)
		}
	}
}

// TestARemovedTokenEndsWhatIsIts: its calls, in both eras, its protocol sessions and its
// sessions, and nothing of another's.
func TestARemovedTokenEndsWhatIsIts(t *testing.T) {
	set := &TokenSet{}
	set.Replace([]Token{tokenOf("a"), tokenOf("b")})
	h := open(t, Options{Tokens: set})
	begun := make(chan struct{}, 2)
	heard := func(message string) {
		if strings.Contains(message, "begun") {
			begun <- struct{}{}
		}
	}
	session, single, other := h.client(t, older, "secret-a", heard), h.client(t, newer, "secret-a", heard), h.client(t, older, "secret-b", nil)
	for _, c := range []*mcp.ClientSession{single, other} {
		if text, wrong := use(t.Context(), t, c, "write_file", map[string]any{"session_id": "work", "path": "x", "text": "x"}); wrong {
			t.Fatal(text)
		}
	}
	for _, c := range []*mcp.ClientSession{session, single} {
		go use(t.Context(), t, c, "run_code", map[string]any{"language": "js", "code": "wait"})
		<-begun
	}
	set.Replace([]Token{tokenOf("b")})
	<-h.ended
	<-h.ended
	if text, wrong := use(t.Context(), t, single, "list_sessions", nil); !wrong || !strings.Contains(text, "Unauthorized") {
		t.Errorf("the removed token: %s", text)
	}
	for end := time.Now().Add(10 * time.Second); len(h.sup.ListSessions("a")) > 0 || h.sup.ListSessions("b")[0].ID != "work"; time.Sleep(5 * time.Millisecond) { // nobody is told
		if time.Now().After(end) {
			t.Fatalf("it has %v, and the other %v", h.sup.ListSessions("a"), h.sup.ListSessions("b"))
		}
	}
	if text, wrong := use(t.Context(), t, other, "read_file", map[string]any{"session_id": "work", "path": "x"}); wrong {
		t.Errorf("another's session: %s", text)
	}
}

// TestATokensOwnLimits: its tools and its requests, and not another's.
func TestATokensOwnLimits(t *testing.T) {
	set := &TokenSet{}
	a, b := tokenOf("a"), tokenOf("b")
	a.Identity.Tools = server.ToolList{Allow: []string{"*_file", "list_*"}, Deny: []string{"write_file"}}
	a.Identity.Requests = 10
	set.Replace([]Token{a, b})
	h := open(t, Options{Tokens: set})
	for _, version := range []string{older, newer} {
		c := h.client(t, version, "secret-a", nil)
		listed, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range listed.Tools {
			if !a.Identity.Tools.Has(tool.Name) {
				t.Errorf("%s: %s is listed", version, tool.Name)
			}
		}
		if text, wrong := use(t.Context(), t, c, "write_file", map[string]any{"session_id": "w", "path": "x", "text": "x"}); !wrong || !strings.Contains(text, "operator of this server does not allow write_file") {
			t.Errorf("%s: %s", version, text)
		}
		answer, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "write_file"})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := json.Marshal(answer); err != nil || strings.Contains(string(text), `"resultType":"complete"`) != (version == newer) {
			t.Errorf("%s: %s %v", version, text, err) // clients refuse an answer without it
		}
	}
	if text, wrong := use(t.Context(), t, h.client(t, newer, "secret-b", nil), "write_file", map[string]any{"session_id": "w", "path": "x", "text": "x"}); wrong {
		t.Errorf("the other's: %s", text)
	}
	var last *http.Response
	var said []byte
	for range 11 {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/mcp", strings.NewReader(`{}`))
		answer, err := (&http.Client{Transport: bearing("secret-a")}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		said, _ = io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		last = answer
	}
	if last.StatusCode != http.StatusTooManyRequests || last.Header.Get("Retry-After") == "" || !strings.Contains(string(said), "more than 10 requests in 1m0s: try again in") {
		t.Errorf("a burst gets %s: %s", last.Status, said)
	}
}
