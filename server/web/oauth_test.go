package web

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// issuer is one of OAuth's, on loopback.
type issuer struct {
	*httptest.Server
	mu      sync.Mutex
	keys    string // its JWKS
	down    bool
	fetches int // of the keys
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.fetches++
		if i.down {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		_, _ = w.Write([]byte(i.keys))
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// publish makes the issuer's keys those of a JWKS.
func (i *issuer) publish(t *testing.T, keys ...jose.JSONWebKey) {
	t.Helper()
	text, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = string(text)
}

func (i *issuer) fetched() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches
}

const audience = "https://rillbox.example.com/mcp"

func (i *issuer) oauth(t *testing.T, scopes ...string) *OAuth {
	t.Helper()
	a, err := NewOAuth(OAuthOptions{Issuer: i.URL, Audience: audience, Scopes: scopes, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// claims are those of a right token, with some changed; nil leaves one out.
func (i *issuer) claims(change map[string]any) map[string]any {
	c := map[string]any{"iss": i.URL, "aud": []string{"other", audience}, "sub": "alice", "exp": time.Now().Add(time.Hour).Unix(), "scope": "run read"}
	maps.Copy(c, change)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func sign(t *testing.T, algorithm jose.SignatureAlgorithm, key any, id, kind string, claims any) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithHeader("kid", id)
	if kind != "" {
		options = options.WithType(jose.ContentType(kind))
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func public(key crypto.Signer, id string) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key.Public(), KeyID: id, Use: "sig"}
}

func TestAccessTokens(t *testing.T) {
	i := newIssuer(t)
	key, stranger := newKey(t), newKey(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pinned := public(rsaKey, "pinned")
	pinned.Algorithm = "PS256"
	encrypts := public(key, "encrypts")
	encrypts.Use = "enc"
	secret := []byte("a secret that the issuer published by mistake")
	i.publish(t, public(key, "1"), public(rsaKey, "rsa"), pinned, encrypts, jose.JSONWebKey{Key: secret, KeyID: "secret"})
	i.mu.Lock() // what other kinds of keys there are is no matter
	i.keys = strings.Replace(i.keys, `{"keys":[`, `{"keys":[{"kty":"NEW","kid":"1"},7,`, 1)
	i.mu.Unlock()
	a := i.oauth(t, "run")
	a.keys.pause = time.Hour // one fetch is all
	token := sign(t, jose.ES256, key, "1", "", i.claims(map[string]any{"exp": time.Now().Add(time.Minute).Unix(), "nbf": time.Now().Unix()}))
	for jump, want := range map[time.Duration]string{0: "", 80 * time.Second: "", -20 * time.Second: "", time.Hour: "it has expired, by this server's clock (", -time.Hour: "it does not hold yet, by this server's clock ("} {
		a.now = func() time.Time { return time.Now().Add(jump) }
		if _, err := a.identify(t.Context(), token); (want != "" || err != nil) && (err == nil || want == "" || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("when the clock has jumped by %v: %v", jump, err)
		}
	}
	a.now = time.Now
	der, err := x509.MarshalPKIXPublicKey(rsaKey.Public())
	if err != nil {
		t.Fatal(err)
	}
	right := i.claims(nil)
	es := func(change map[string]any) string { return sign(t, jose.ES256, key, "1", "", i.claims(change)) }
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	body := func(token string) string { return strings.Split(token, ".")[1] }
	good := es(nil)
	hour := time.Now().Add(time.Hour).Unix()
	for name, row := range map[string]struct{ token, want string }{
		"right":                       {good, ""},
		"RSA":                         {sign(t, jose.RS256, rsaKey, "rsa", "at+jwt", right), ""},
		"its algorithm":               {sign(t, jose.PS256, rsaKey, "pinned", "JWT", right), ""},
		"scopes as a list":            {es(map[string]any{"scope": nil, "scp": []string{"run"}}), ""},
		"scope as a list":             {es(map[string]any{"scope": []string{"run"}}), ""},
		"an expiry of text":           {es(map[string]any{"exp": "tomorrow"}), "can't be read"},
		"a subject that is a number":  {es(map[string]any{"sub": 7}), "can't be read"},
		"an audience that is none":    {es(map[string]any{"aud": 7}), "can't be read"},
		"expired just now":            {es(map[string]any{"exp": time.Now().Add(-10 * time.Second).Unix()}), ""},
		"alg none":                    {part(`{"alg":"none","kid":"1"}`) + "." + body(good) + ".", "no JWT"},
		"alg None":                    {part(`{"alg":"None","kid":"1"}`) + "." + body(good) + ".", "no JWT"},
		"HS256 with a public key":     {sign(t, jose.HS256, der, "rsa", "", right), "no JWT"},
		"HS256 with a published one":  {sign(t, jose.HS256, secret, "secret", "", right), "no JWT"},
		"another's key":               {sign(t, jose.ES256, stranger, "1", "", right), "none of its issuer's keys"},
		"a key that it brings":        {withOwnKey(t, stranger, right), "none of its issuer's keys"},
		"an ID that is none":          {sign(t, jose.ES256, key, "2", "", right), "none of its issuer's keys"},
		"an ID that is a path":        {sign(t, jose.ES256, key, "../../../../dev/null", "", right), "none of its issuer's keys"},
		"an ID that is a query":       {sign(t, jose.ES256, key, "1' OR '1'='1", "", right), "none of its issuer's keys"},
		"no ID":                       {sign(t, jose.ES256, key, "", "", right), "none of its issuer's keys"},
		"a key that encrypts":         {sign(t, jose.ES256, key, "encrypts", "", right), "none of its issuer's keys"},
		"an algorithm of another key": {sign(t, jose.RS256, rsaKey, "pinned", "", right), "none of its issuer's keys"},
		"a key of another kind":       {sign(t, jose.RS256, rsaKey, "1", "", right), "none of its issuer's keys"},
		"changed":                     {strings.Split(good, ".")[0] + "." + body(es(map[string]any{"sub": "bob"})) + "." + strings.Split(good, ".")[2], "none of its issuer's keys"},
		"for logout":                  {sign(t, jose.ES256, key, "1", "logout+jwt", right), "for something else"},
		"expired":                     {es(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}), "expired"},
		"never expires":               {es(map[string]any{"exp": nil}), "when it expires"},
		"not yet":                     {es(map[string]any{"nbf": hour}), "not hold yet"},
		"made in the future":          {es(map[string]any{"iat": hour}), "not hold yet"},
		"another audience":            {es(map[string]any{"aud": "https://other.example.com"}), "another audience"},
		"an audience in part":         {es(map[string]any{"aud": audience + "/x"}), "another audience"},
		"no audience":                 {es(map[string]any{"aud": nil}), "another audience"},
		"another issuer":              {es(map[string]any{"iss": "https://evil.example.com"}), "another issuer"},
		"no issuer":                   {es(map[string]any{"iss": nil}), "another issuer"},
		"no subject":                  {es(map[string]any{"sub": nil}), "subject"},
		"a subject of two lines":      {es(map[string]any{"sub": "alice\nbob"}), "subject"},
		"a long subject":              {es(map[string]any{"sub": strings.Repeat("a", 256)}), "subject"},
		"no scopes":                   {es(map[string]any{"scope": nil}), errScope.Error()},
		"a scope in part":             {es(map[string]any{"scope": "runs"}), errScope.Error()},
		"no JWT":                      {"rillbox_ABC", "no JWT"},
		"two signatures":              {`{"payload":"` + body(good) + `","signatures":[]}`, "no JWT"},
	} {
		t.Run(name, func(t *testing.T) {
			identity, err := a.identify(t.Context(), row.token)
			switch {
			case row.want == "" && (err != nil || identity.Name != "oauth:alice"):
				t.Errorf("%+v, %v", identity, err)
			case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
				t.Errorf("%+v, %v; want %s", identity, err, row.want)
			case err != nil && strings.Contains(err.Error(), row.token):
				t.Errorf("the error has the token: %v", err)
			}
		})
	}
	if n := i.fetched(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

// withOwnKey is a token that has the key that it is signed with in its header.
func withOwnKey(t *testing.T, key *ecdsa.PrivateKey, claims any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{EmbedJWK: true}).WithHeader("kid", "1"))
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TestKeysRotate: a key that is new is fetched when a token has it, and one that is gone
// holds no more; who makes up IDs has nothing fetched.
func TestKeysRotate(t *testing.T) {
	i := newIssuer(t)
	first, second := newKey(t), newKey(t)
	i.publish(t, public(first, "1"))
	a := i.oauth(t)
	if _, err := a.identify(t.Context(), sign(t, jose.ES256, first, "1", "", i.claims(nil))); err != nil {
		t.Fatal(err)
	}
	i.publish(t, public(second, "2"))
	fresh := sign(t, jose.ES256, second, "2", "", i.claims(nil))
	for range 20 {
		if _, err := a.identify(t.Context(), fresh); err == nil {
			t.Fatal("the keys were fetched again at once")
		}
	}
	if n := i.fetched(); n != 1 {
		t.Errorf("the keys were fetched %d times for IDs that are not known", n)
	}
	a.keys.pause = 0
	if _, err := a.identify(t.Context(), fresh); err != nil {
		t.Error(err)
	}
	if _, err := a.identify(t.Context(), sign(t, jose.ES256, first, "1", "", i.claims(nil))); err == nil {
		t.Error("a key that is gone holds")
	}
}

// TestAnIssuerThatIsDown: what is known of it holds for a day; without that nobody is
// identified, and told to come back.
func TestAnIssuerThatIsDown(t *testing.T) {
	i := newIssuer(t)
	key := newKey(t)
	token := sign(t, jose.ES256, key, "1", "", i.claims(nil))
	i.down = true
	a := i.oauth(t)
	if _, err := a.identify(t.Context(), token); !errors.Is(err, errNoKeys) {
		t.Errorf("nothing is known: %v", err)
	}
	i.publish(t, public(key, "1"))
	i.mu.Lock()
	i.down = false
	i.mu.Unlock()
	a.keys.pause = 0
	if _, err := a.identify(t.Context(), token); err != nil {
		t.Errorf("it is up again: %v", err)
	}
	for _, row := range []struct{ name, keys string }{
		{"a huge answer", `{"keys":[` + strings.Repeat(" ", maxDocument) + `]}`},
		{"no JSON", "<html>"},
		{"no keys", `{"keys":[]}`},
	} {
		i.mu.Lock()
		i.keys = row.keys
		before := i.fetches
		i.mu.Unlock()
		unknown := sign(t, jose.ES256, key, "2", "", i.claims(nil))
		if _, err := a.identify(t.Context(), unknown); err == nil || i.fetched() == before {
			t.Errorf("%s: %v after %d fetches", row.name, err, i.fetched()-before)
		}
		if _, err := a.identify(t.Context(), token); err != nil {
			t.Errorf("%s: what was known holds no more: %v", row.name, err)
		}
	}
	a.keys.mu.Lock()
	a.keys.fetched = time.Now().Add(-keysMost)
	a.keys.mu.Unlock()
	if _, err := a.identify(t.Context(), token); !errors.Is(err, errNoKeys) {
		t.Errorf("after a day: %v", err)
	}
}

func TestOAuthOptionsThatAreWrong(t *testing.T) {
	for _, o := range []OAuthOptions{
		{Issuer: "http://login.example.com", Audience: "x"},
		{Issuer: "login.example.com", Audience: "x"},
		{Issuer: "https://login.example.com"},
		{Issuer: "https://login.example.com", Audience: "x", KeysURL: "file:///etc/keys"},
		{Issuer: "https://login.example.com", Audience: "x", Scopes: []string{`a" b`}},
	} {
		if _, err := NewOAuth(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// TestAProtectedResource: a client learns where to get a token, which scopes it needs, and
// what is wrong with one.
func TestAProtectedResource(t *testing.T) {
	i := newIssuer(t)
	key := newKey(t)
	i.publish(t, public(key, "1"))
	set := &TokenSet{}
	set.Replace([]Token{tokenOf("a")})
	h := open(t, Options{Tokens: set, OAuth: i.oauth(t, "run")})
	send := func(token string) *http.Response {
		t.Helper()
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/mcp", strings.NewReader("{}"))
		answer, err := (&http.Client{Transport: bearing(token)}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer
	}
	about := h.url + "/.well-known/oauth-protected-resource/mcp"
	for _, row := range []struct {
		name, token string
		status      int
		want        string
	}{
		{"none", "", http.StatusUnauthorized, `Bearer realm="rillbox", resource_metadata="` + about + `", scope="run"`},
		{"a wrong one", "x", http.StatusUnauthorized, `error="invalid_token"`},
		{"too few scopes", sign(t, jose.ES256, key, "1", "", i.claims(map[string]any{"scope": "read"})), http.StatusForbidden, `scope="run", error="insufficient_scope"`},
		{"a right one", sign(t, jose.ES256, key, "1", "", i.claims(nil)), http.StatusUnsupportedMediaType, ""},
		{"a token of the file", "secret-a", http.StatusUnsupportedMediaType, ""},
	} {
		answer := send(row.token)
		if got := answer.Header.Get("WWW-Authenticate"); answer.StatusCode != row.status || !strings.Contains(got, row.want) || (row.want == "") != (got == "") {
			t.Errorf("%s: %s, %q", row.name, answer.Status, got)
		}
	}
	for _, at := range []string{about, strings.TrimSuffix(about, "/mcp")} {
		answer, err := http.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		var told struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
		}
		err = json.NewDecoder(answer.Body).Decode(&told)
		_ = answer.Body.Close()
		if err != nil || told.Resource != h.url+"/mcp" || len(told.Servers) != 1 || told.Servers[0] != i.URL || len(told.Scopes) != 1 {
			t.Errorf("%s: %+v, %v", at, told, err)
		}
	}
	c := h.client(t, older, sign(t, jose.ES256, key, "1", "", i.claims(nil)), nil)
	if text, wrong := use(t.Context(), t, c, "write_file", map[string]any{"session_id": "work", "path": "x", "text": "x"}); wrong {
		t.Error(text)
	}
	if list := h.sup.ListSessions("oauth:alice"); len(list) != 1 {
		t.Errorf("the subject has %d sessions", len(list))
	}
}
