package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// keysTime is how long an issuer's keys are used before they are fetched again, and
	// keysMost for how long when that fails.
	keysTime, keysMost = 15 * time.Minute, 24 * time.Hour
	// fetchPause is the least time between two fetches, and fetchTime the most that one
	// takes.
	fetchPause, fetchTime = 5 * time.Second, 10 * time.Second
	// maxDocument is the size of the largest answer of an issuer, in bytes.
	maxDocument = 1 << 20
)

// errNoKeys says that the keys of an issuer are not known.
var errNoKeys = errors.New("its keys are not known")

// keys are those that an issuer signs with.
type keys struct {
	issuer string
	url    string // of the keys; empty for the one that the issuer's metadata tells
	http   *http.Client
	log    *slog.Logger
	pause  time.Duration // fetchPause

	mu       sync.Mutex
	known    []jose.JSONWebKey
	fetched  time.Time     // when known came
	tried    time.Time     // when the last fetch began
	fetching chan struct{} // closed at the end of the one that goes on
}

func newKeys(issuer, url string, log *slog.Logger) *keys {
	return &keys{issuer: issuer, url: url, log: log, pause: fetchPause, http: &http.Client{
		Timeout:       fetchTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// find gives the keys with an ID. One that is not known may be new: the keys are fetched
// for it, but not for each that somebody makes up.
func (k *keys) find(ctx context.Context, id string) ([]jose.JSONWebKey, error) {
	found, wait, err := k.look(id, true)
	if len(found) > 0 || wait == nil {
		return found, err
	}
	select {
	case <-wait:
		found, _, err = k.look(id, false) // what was fetched is the newest
		return found, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// look looks among what is known, and begins to fetch if that is due and it may: wait is
// closed when it ends.
func (k *keys) look(id string, mayFetch bool) (found []jose.JSONWebKey, wait <-chan struct{}, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	age := time.Since(k.fetched)
	if age < keysMost {
		for _, key := range k.known {
			if key.KeyID == id {
				found = append(found, key)
			}
		}
	} else {
		err = errNoKeys
	}
	if mayFetch && (len(found) == 0 || age > keysTime) && k.fetching == nil && time.Since(k.tried) > k.pause {
		k.tried, k.fetching = time.Now(), make(chan struct{})
		go k.fetch(k.fetching)
	}
	return found, k.fetching, err
}

// fetch fetches the keys; those that are known stay when it fails.
func (k *keys) fetch(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	fresh, err := k.download(ctx)
	if err != nil {
		k.log.Error("cannot fetch the keys of the OAuth issuer; tokens that need them are refused", "issuer", k.issuer, "err", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.known, k.fetched = fresh, time.Now()
	}
	k.fetching = nil
	close(done)
}

func (k *keys) download(ctx context.Context) ([]jose.JSONWebKey, error) {
	at := k.url
	if at == "" {
		var err error
		if at, err = k.discover(ctx); err != nil {
			return nil, err
		}
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := k.get(ctx, at, &set); err != nil {
		return nil, err
	}
	var usable []jose.JSONWebKey
	for _, text := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(text, &key) == nil && key.Valid() && key.IsPublic() && (key.Use == "" || key.Use == "sig") {
			usable = append(usable, key) // others may be of kinds that we don't know
		}
	}
	if len(usable) == 0 {
		return nil, fmt.Errorf("%s has no public key to verify with", at)
	}
	return usable, nil
}

// discover asks the issuer's metadata (RFC 8414, or OpenID Connect's) where its keys are.
func (k *keys) discover(ctx context.Context) (string, error) {
	u, err := url.Parse(k.issuer)
	if err != nil {
		return "", err
	}
	path := strings.TrimSuffix(u.Path, "/")
	origin := u.Scheme + "://" + u.Host
	var wrong []error
	for _, at := range []string{origin + "/.well-known/oauth-authorization-server" + path, origin + path + "/.well-known/openid-configuration"} {
		var about struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		err := k.get(ctx, at, &about)
		if err == nil && about.Issuer != k.issuer {
			err = fmt.Errorf("%s is of another issuer, %.200q", at, about.Issuer)
		}
		if err == nil {
			err = checkIssuerURL(about.Keys)
		}
		if err == nil {
			return about.Keys, nil
		}
		wrong = append(wrong, err)
	}
	return "", errors.Join(wrong...)
}

// get decodes a JSON document of the issuer's.
func (k *keys) get(ctx context.Context, at string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	answer, err := k.http.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", at, answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxDocument+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", at, err)
	case len(text) > maxDocument:
		return fmt.Errorf("%s has more than %d bytes", at, maxDocument)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}

// checkIssuerURL refuses a URL whose answers others could change on their way here.
func checkIssuerURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return fmt.Errorf("%.200q is no URL of an issuer: want one such as https://login.example.com", text)
	}
	host := u.Hostname()
	address, err := netip.ParseAddr(host)
	if local := host == "localhost" || err == nil && address.Unmap().IsLoopback(); u.Scheme != "https" && !(u.Scheme == "http" && local) {
		return fmt.Errorf("%.200q: want https", text)
	}
	return nil
}
