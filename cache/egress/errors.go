package egress

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"syscall"
)

// ErrOffline means that something could not be fetched because the network is
// forbidden or missing.
var ErrOffline = errors.New("the network is not reachable")

// NotCached returns the error for something that is not in the cache and can't be
// fetched. what names it as a person would ("Deno 2.9.6"). It wraps ErrOffline.
func NotCached(what string) error {
	return fmt.Errorf("%s is not in the cache, and %w", what, ErrOffline)
}

// IsLocal reports whether err is a fault of this machine, such as a full disk, and not
// of the network or the server.
func IsLocal(err error) bool {
	return errors.As(err, new(*fs.PathError)) || errors.As(err, new(*os.LinkError)) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// IsOffline reports whether err says that the network is forbidden, missing or
// unreachable.
func IsOffline(err error) bool {
	if errors.Is(err, ErrOffline) || errors.Is(err, errNotConnected) {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return errors.As(err, new(*net.DNSError)) || ok && (op.Op == "dial" || op.Op == "proxyconnect")
}

var (
	errNotConnected = fmt.Errorf("not connected within %v", connectTime)
	errSilent       = fmt.Errorf("no byte came for %v", idleTime)
	errNotResumed   = errors.New("the server does not continue where the connection dropped")
)

// RefusedError means that a URL or a response broke a rule.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return e.Text }

func refuse(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// PrivateError means that a program's URL led to an address that is not public.
type PrivateError struct{ Address netip.Addr }

func (e *PrivateError) Error() string {
	return fmt.Sprintf("%s is a private or reserved address, which is never fetched from for a program", e.Address)
}

// TooLargeError means that a response is larger than Limit bytes.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string {
	limit, unit := e.Limit, "bytes"
	if limit >= 1<<20 {
		limit, unit = limit>>20, "MiB"
	}
	return fmt.Sprintf("it sent more than the %d %s that may come at once", limit, unit)
}

// MismatchError means that what a host sent does not have the hash that was wanted.
// Hashes are in hexadecimal.
type MismatchError struct{ Host, Want, Got string }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("refused, as the bytes are not those that are pinned: want hash %s, got %s", e.Want, e.Got)
}

// UnreachableError means that a host gave no response.
type UnreachableError struct {
	Host string
	Err  error
}

func (e *UnreachableError) Error() string { return fmt.Sprintf("%s: %v", e.Host, e.Err) }
func (e *UnreachableError) Unwrap() error { return e.Err }

// StatusError means that a host responded with an unexpected status.
type StatusError struct {
	Host string
	Code int
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s answered %d %s", e.Host, e.Code, http.StatusText(e.Code))
}

// permanent reports whether a retry would get the same response.
func (e *StatusError) permanent() bool {
	return e.Code != http.StatusTooManyRequests && e.Code != http.StatusRequestTimeout &&
		(e.Code < 500 || e.Code == http.StatusNotImplemented)
}

// brokenError means that a body ended early.
type brokenError struct {
	err  error
	last bool // and the download must not be resumed
}

func (e *brokenError) Error() string { return "the transfer broke off: " + e.err.Error() }
func (e *brokenError) Unwrap() error { return e.err }

func (e *brokenError) permanent() bool { return e.last }

func (*DeniedError) permanent() bool   { return true }
func (*RefusedError) permanent() bool  { return true }
func (*PrivateError) permanent() bool  { return true }
func (*TooLargeError) permanent() bool { return true }
func (*MismatchError) permanent() bool { return true }

// permanent reports whether a retry would end in the same error.
func permanent(err error) bool {
	known, ok := errors.AsType[interface {
		error
		permanent() bool
	}](err)
	return ok && known.permanent() || !ok && IsLocal(err)
}

// withoutURL removes the URL from an error of net/http, as it may hold a password.
func withoutURL(err error) error {
	if with, ok := errors.AsType[*url.Error](err); ok {
		return with.Err
	}
	return err
}
