//go:build !windows

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// writeCertificate writes a certificate with a number, and its key.
func writeCertificate(t *testing.T, cert, key string, number int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(number), DNSNames: []string{"rillbox.example"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if path == "" {
			continue
		}
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A certificate that was replaced is used for the next connection; while its files don't
// fit each other, the one before is.
func TestACertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key, 1)
	c, err := openCertificate(cert, key, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	if names := c.names(); len(names) != 1 || names[0] != "rillbox.example" {
		t.Errorf("its names are %v", names)
	}
	check := func(what string, want int64) {
		t.Helper()
		got, err := c.forConnection(nil)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(got.Certificate[0])
		if err != nil || leaf.SerialNumber.Int64() != want {
			t.Errorf("%s: number %v (%v), want %d", what, leaf.SerialNumber, err, want)
		}
	}
	later := func() { c.looked = time.Now().Add(-lookTime) }
	check("at first", 1)
	writeCertificate(t, cert, key, 2)
	check("looked at a moment ago", 1)
	later()
	check("replaced", 2)
	writeCertificate(t, cert, "", 3)
	later()
	check("with another's key", 2)
	writeCertificate(t, cert, key, 4)
	later()
	check("whole again", 4)
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	later()
	check("removed", 4)
	writeCertificate(t, cert, key, 5)
	c.reload()
	check("on a signal", 5)
}
