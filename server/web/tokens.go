package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
)

// OneToken identifies requests that have a token as those of one identity.
func OneToken(token string) Tokens { return oneToken(sha256.Sum256([]byte(token))) }

// oneToken is a token's digest.
type oneToken [sha256.Size]byte

func (o oneToken) Identify(_ context.Context, token string) (Identity, bool) {
	digest := sha256.Sum256([]byte(token))
	return Identity{Name: "token"}, subtle.ConstantTimeCompare(digest[:], o[:]) == 1
}

func (oneToken) Challenge(*http.Request) string { return `Bearer realm="rillbox"` }
