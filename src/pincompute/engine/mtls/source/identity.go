package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"
)

var errNoIdentity = errors.New("the pod has no certificate yet")

// identity is the pod's certificate with its key, and the CAs of the platform, as the files have them. It implements the
// sources of go-spiffe, which asks at every handshake.
type identity struct {
	folder  string
	log     *slog.Logger
	current atomic.Pointer[credentials]
	failed  string
}

type credentials struct {
	files  [2][]byte
	svid   *x509svid.SVID
	bundle *x509bundle.Bundle
}

func newIdentity(folder string, log *slog.Logger) *identity {
	identity := &identity{folder: folder, log: log}
	identity.reload()
	return identity
}

// follow reads the files again each second. Watching them would not be simpler: the kubelet replaces a symbolic link.
func (i *identity) follow(stop context.Context) {
	ticker := time.NewTicker(reloadEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop.Done():
			return
		case <-ticker.C:
			i.reload()
		}
	}
}

// reload keeps the last good credentials while the files cannot be read, and reports each failure once.
func (i *identity) reload() {
	read, err := i.read()
	if err != nil {
		if message := err.Error(); message != i.failed {
			i.failed = message
			i.log.Warn("certificate not loaded", "error", message)
		}
		return
	}
	i.failed = ""
	if read != nil {
		i.current.Store(read)
		leaf := read.svid.Certificates[0]
		i.log.Info("certificate loaded", "id", read.svid.ID.String(), "expires", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
}

// read returns nil if the files are those that are loaded.
func (i *identity) read() (*credentials, error) {
	own, err := readFile(filepath.Join(i.folder, "identity.pem"))
	if err != nil {
		return nil, err
	}
	trust, err := readFile(filepath.Join(i.folder, "trust.pem"))
	if err != nil {
		return nil, err
	}
	if loaded := i.current.Load(); loaded != nil && bytes.Equal(loaded.files[0], own) && bytes.Equal(loaded.files[1], trust) {
		return nil, nil
	}
	svid, err := parseSVID(own)
	if err != nil {
		return nil, fmt.Errorf("identity.pem: %w", err)
	}
	bundle, err := x509bundle.Parse(svid.ID.TrustDomain(), trust)
	if err != nil {
		return nil, fmt.Errorf("trust.pem: %w", err)
	}
	return &credentials{[2][]byte{own, trust}, svid, bundle}, nil
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxIdentityBytes+1))
	if err == nil && len(content) > maxIdentityBytes {
		err = fmt.Errorf("%s has more than %d bytes", path, maxIdentityBytes)
	}
	return content, err
}

// parseSVID reads a file with key and certificates in any order. A key that is not that of the certificate is an error,
// as while a file is being replaced.
func parseSVID(content []byte) (*x509svid.SVID, error) {
	pair, err := tls.X509KeyPair(content, content)
	if err != nil {
		return nil, err
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("the private key cannot sign")
	}
	certificates := make([]*x509.Certificate, 0, len(pair.Certificate))
	for _, raw := range pair.Certificate {
		certificate, err := x509.ParseCertificate(raw)
		if err != nil {
			return nil, err
		}
		certificates = append(certificates, certificate)
	}
	id, err := x509svid.IDFromCert(certificates[0])
	if err != nil {
		return nil, err
	}
	return &x509svid.SVID{ID: id, Certificates: certificates, PrivateKey: signer}, nil
}

func (i *identity) GetX509SVID() (*x509svid.SVID, error) {
	if loaded := i.current.Load(); loaded != nil {
		return loaded.svid, nil
	}
	return nil, errNoIdentity
}

func (i *identity) GetX509BundleForTrustDomain(domain spiffeid.TrustDomain) (*x509bundle.Bundle, error) {
	loaded := i.current.Load()
	if loaded == nil {
		return nil, errNoIdentity
	}
	return loaded.bundle.GetX509BundleForTrustDomain(domain)
}

// problem is empty while the proxy can take part in handshakes.
func (i *identity) problem(now time.Time) string {
	loaded := i.current.Load()
	if loaded == nil {
		return errNoIdentity.Error()
	}
	if leaf := loaded.svid.Certificates[0]; now.After(leaf.NotAfter) {
		return "the pod's certificate expired at " + leaf.NotAfter.UTC().Format(time.RFC3339)
	}
	return ""
}

// workloadOf is the workload that a SPIFFE ID names; the zero value for the ID of anything else.
func workloadOf(id spiffeid.ID) workload {
	found, err := parseWorkload(trimSlash(id.Path()))
	if err != nil {
		return workload{}
	}
	return found
}

func trimSlash(path string) string {
	if len(path) > 0 && path[0] == '/' {
		return path[1:]
	}
	return path
}
