package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// OAuth identifies requests by the access tokens of an OAuth 2.1 issuer: JWTs that it
// signed for this server.
type OAuth struct {
	issuer, audience string
	scopes           []string
	keys             *keys
	now              func() time.Time // for tests
}

// OAuthOptions say which tokens are accepted.
type OAuthOptions struct {
	// Issuer is the URL of who issues them, just as it is in their claim iss.
	Issuer string
	// Audience is what they must have in their claim aud.
	Audience string
	// Scopes are those that each must have.
	Scopes []string
	// KeysURL is where the issuer's keys are; empty for where its metadata says.
	KeysURL string
	Log     *slog.Logger
}

// NewOAuth returns an OAuth, and begins to fetch the issuer's keys.
func NewOAuth(o OAuthOptions) (*OAuth, error) {
	err := checkIssuerURL(o.Issuer)
	if err == nil && o.KeysURL != "" {
		err = checkIssuerURL(o.KeysURL)
	}
	if err != nil {
		return nil, err
	}
	if o.Audience == "" {
		return nil, errors.New("no audience: a token that was made for another server would be accepted")
	}
	for _, scope := range o.Scopes {
		if scope == "" || strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			return nil, fmt.Errorf("%.80q is no scope", scope)
		}
	}
	a := &OAuth{o.Issuer, o.Audience, o.Scopes, newKeys(o.Issuer, o.KeysURL, o.Log), time.Now}
	a.keys.look("", true)
	return a, nil
}

// algorithms are those whose keys can't be both the issuer's secret and known to all.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// clockLeeway is how much the issuer's clock may differ from ours.
const clockLeeway = 30 * time.Second

// errScope says that a token is right and does not suffice.
var errScope = errors.New("its scopes do not suffice")

// identify gives the identity of a token: its subject, for the issuer is always the same.
// Errors have nothing of the token in them.
func (a *OAuth) identify(ctx context.Context, token string) (Identity, error) {
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil || len(parsed.Headers) != 1 {
		return Identity{}, errors.New("it is no JWT with a signature that can be verified")
	}
	header := parsed.Headers[0]
	switch kind, _ := header.ExtraHeaders[jose.HeaderType].(string); strings.ToLower(kind) {
	case "", "jwt", "at+jwt", "application/at+jwt":
	default:
		return Identity{}, errors.New("it is a JWT for something else than access")
	}
	found, err := a.keys.find(ctx, header.KeyID)
	if err != nil {
		return Identity{}, err
	}
	for _, key := range found {
		if key.Algorithm != "" && key.Algorithm != header.Algorithm {
			continue
		}
		if parsed.Claims(key.Key) != nil {
			continue
		}
		var claims jwt.Claims
		var more struct {
			Scope  json.RawMessage `json:"scope"`
			Scopes json.RawMessage `json:"scp"`
		}
		if parsed.UnsafeClaimsWithoutVerification(&claims, &more) != nil { // it was verified just now
			return Identity{}, errors.New("its issuer signed it, and its claims can't be read: one has a value of another kind")
		}
		return a.judge(claims, append(scopesOf(more.Scopes), scopesOf(more.Scope)...))
	}
	return Identity{}, errors.New("none of its issuer's keys signed it")
}

// judge looks at claims whose signature is right.
func (a *OAuth) judge(claims jwt.Claims, scopes []string) (Identity, error) {
	if claims.Expiry == nil {
		return Identity{}, errors.New("it does not say when it expires")
	}
	err := claims.ValidateWithLeeway(jwt.Expected{Issuer: a.issuer, AnyAudience: jwt.Audience{a.audience}, Time: a.now()}, clockLeeway)
	switch {
	case errors.Is(err, jwt.ErrExpired):
		return Identity{}, fmt.Errorf("it has expired, by this server's clock (%s)", a.now().UTC().Format(time.RFC3339))
	case errors.Is(err, jwt.ErrInvalidAudience):
		return Identity{}, errors.New("it is for another audience")
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return Identity{}, errors.New("it is of another issuer")
	case err != nil:
		return Identity{}, fmt.Errorf("it does not hold yet, by this server's clock (%s)", a.now().UTC().Format(time.RFC3339))
	}
	if s := claims.Subject; s == "" || len(s) > 255 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return Identity{}, errors.New("its subject is not 1 to 255 characters of ASCII")
	}
	for _, scope := range a.scopes {
		if !slices.Contains(scopes, scope) {
			return Identity{}, errScope
		}
	}
	return Identity{Name: "oauth:" + claims.Subject}, nil
}

// scopesOf are those of a claim scope or scp, which issuers write as a list or as one text.
func scopesOf(claim json.RawMessage) (list []string) {
	var text string
	if json.Unmarshal(claim, &text) == nil {
		return strings.Fields(text)
	}
	_ = json.Unmarshal(claim, &list) // what is neither has none
	return list
}

// metadataPath is where a client learns which issuer to ask (RFC 9728).
const metadataPath = "/.well-known/oauth-protected-resource"

// serveMetadata says which issuer's tokens this server takes. Everybody may know it.
func (d *Door) serveMetadata(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	switch r.Method {
	case http.MethodOptions:
		answerPreflight(w, r)
		return
	case http.MethodGet, http.MethodHead:
	default:
		refuse(http.StatusMethodNotAllowed, "this can be read with GET").with("Allow", "GET").write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{ // who has gone needs no answer
		"resource":                 d.address(r) + d.o.Path,
		"authorization_servers":    []string{d.o.OAuth.issuer},
		"scopes_supported":         append([]string{}, d.o.OAuth.scopes...),
		"bearer_methods_supported": []string{"header"},
		"resource_name":            "Rillbox",
	})
}

// address is the server's, as a client knows it.
func (d *Door) address(r *http.Request) string { return d.scheme(r) + "://" + r.Host }

// challenge is the WWW-Authenticate header of a request whose token is missing, or wrong
// in the way that an error code of OAuth's tells.
func (d *Door) challenge(r *http.Request, code string) string {
	text := `Bearer realm="rillbox"`
	if d.o.OAuth != nil {
		text += fmt.Sprintf(`, resource_metadata="%s"`, d.address(r)+metadataPath+d.o.Path)
		if len(d.o.OAuth.scopes) > 0 {
			text += fmt.Sprintf(`, scope="%s"`, strings.Join(d.o.OAuth.scopes, " "))
		}
	}
	if code != "" {
		text += fmt.Sprintf(`, error="%s"`, code)
	}
	return text
}
