package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"reflect"
	"sync"

	"rillbox/supervisor"
)

// Token is what is known of a token: its digest, and whose it is. Identity.Revoked is
// made by the set that it is in.
type Token struct {
	SHA256   [sha256.Size]byte
	Identity Identity
}

// TokenSet are the tokens that hold.
type TokenSet struct {
	mu   sync.RWMutex
	held []heldToken
	gone map[string]supervisor.Terms // of names that no token has any more
}

type heldToken struct {
	Token
	revoked context.Context
	revoke  context.CancelFunc
}

// Replace puts other tokens in place of those that hold. One that is not among them just
// as it was is revoked: what its identity runs and keeps ends.
func (s *TokenSet) Replace(tokens []Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := make([]heldToken, 0, len(tokens))
	for _, token := range tokens {
		one := heldToken{Token: token}
		for i, old := range s.held {
			if reflect.DeepEqual(old.Token, token) {
				one = old
				s.held[i].revoke = func() {} // it goes on
			}
		}
		if one.revoked == nil {
			one.revoked, one.revoke = context.WithCancel(context.Background())
		}
		held = append(held, one)
	}
	if s.gone == nil {
		s.gone = map[string]supervisor.Terms{}
	}
	for _, old := range s.held {
		old.revoke()
		s.gone[old.Identity.Name] = old.Identity.Terms
	}
	s.held = held
}

// Identify looks at all tokens, so that the time that it takes tells of none.
func (s *TokenSet) Identify(_ context.Context, token string) (identity Identity, ok bool) {
	digest := sha256.Sum256([]byte(token))
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, one := range s.held {
		if subtle.ConstantTimeCompare(digest[:], one.SHA256[:]) == 1 {
			identity, ok = one.Identity, true
			identity.Revoked = one.revoked
		}
	}
	return identity, ok
}

// Terms are what the operator allows a token's identity; of one that was revoked, what it was
// allowed: a call of its may still be on its way.
func (s *TokenSet) Terms(name string) supervisor.Terms {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, one := range s.held {
		if one.Identity.Name == name {
			return one.Identity.Terms
		}
	}
	return s.gone[name]
}
