//go:build !windows

package main

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificate is the server's, which is read again when its files have changed: programs
// that renew certificates replace them.
type certificate struct {
	cert, key string // files
	log       *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	seen    [2]fileState
	looked  time.Time
}

// fileState tells that a file has changed.
type fileState struct {
	size int64
	time time.Time
}

// lookTime is how often the files are looked at, at most.
const lookTime = time.Second

// openCertificate reads a certificate.
func openCertificate(cert, key string, log *slog.Logger) (*certificate, error) {
	c := &certificate{cert: cert, key: key, log: log}
	return c, c.read()
}

// read reads the files. The caller holds mu, or nobody else has c.
func (c *certificate) read() error {
	c.looked, c.seen = time.Now(), c.states() // before they are read: what changes meanwhile is read again
	read, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err == nil {
		c.current = &read
	}
	return err
}

func (c *certificate) states() (states [2]fileState) {
	for i, path := range []string{c.cert, c.key} {
		if st, err := os.Stat(path); err == nil {
			states[i] = fileState{st.Size(), st.ModTime()}
		}
	}
	return states
}

// forConnection is the certificate as it is in the files now; the one before if they have
// none.
func (c *certificate) forConnection(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) >= lookTime {
		c.looked = time.Now()
		if c.states() != c.seen {
			c.readAgain()
		}
	}
	return c.current, nil
}

// reload reads the files whether they have changed or not.
func (c *certificate) reload() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readAgain()
}

func (c *certificate) readAgain() {
	if err := c.read(); err != nil {
		c.log.Error("the certificate can't be read again; the one before is used", "err", err)
		return
	}
	c.log.Info("read the certificate again", "file", c.cert)
}

// names are the hosts that it is for.
func (c *certificate) names() []string {
	leaf, err := x509.ParseCertificate(c.current.Certificate[0])
	if err != nil {
		return nil
	}
	return leaf.DNSNames
}
