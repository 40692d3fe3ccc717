// Package kv fetches secrets of identities from an OpenBao or HashiCorp Vault
// server: its key/value engine, version 2, after a login by AppRole or with a
// token.
//
// It is the one package besides internal/executor that opens a connection
// outward, to the one address of its options and to nothing else (guard.go). It
// must never follow a redirect, send a request again, obey an environment
// variable, or put a byte of an answer into an error. Tokens live in memory only.
// Only cmd/chatelained may import it.
//
// The library keeps a path and a request apart from the socket; what it sends
// goes through the guard, and answers are parsed here, strictly. Its own parser
// takes members that stand twice, and turns secrets into strings that cannot be
// cleared.
package kv

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/vault/api"

	"chatelaine/internal/secret"
	"chatelaine/internal/vault"
)

const (
	// maxAnswer is far above an entry with some fields; the server itself takes
	// about a mebibyte.
	maxAnswer = 256 << 10
	// maxHeader is what the executor takes too.
	maxHeader = 64 << 10
	// connectLimit and handshakeLimit end what the time-out would end too, so that
	// the error can say which part was silent.
	connectLimit   = 3 * time.Second
	handshakeLimit = 3 * time.Second
	// maxAddress is what the name of a host may have, and a little more.
	maxAddress = 300
	// DefaultAppRole is where the method is mounted unless somebody moved it.
	DefaultAppRole = "approle"
)

// Options describe one server and how to log in. Name, Address, Timeout and
// Credential are needed.
type Options struct {
	Name    string
	Address string // https://HOST[:PORT], nothing behind it
	CAPEM   []byte // its own roots; nil: the system's
	// Mount is where the key/value engine is, if its path has more than one
	// segment; "" takes the first segment of each reference.
	Mount     string
	Namespace string
	// RoleID logs in by AppRole, mounted at AppRole; "": the credential is a token.
	RoleID, AppRole string
	Timeout         time.Duration // of a whole fetch, the login included
	// Credential reads the secret id or the token; the caller wipes it.
	Credential func(ctx context.Context) (secret.Secret, error)
}

// Source is one server. It is safe for concurrent use.
type Source struct {
	o      Options
	client *api.Client
	login  login
}

// CheckAddress says what is wrong with an address and returns host and port.
func CheckAddress(address string) (hostPort string, err error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil:
		return "", errors.New("it must be https://HOST or https://HOST:PORT")
	case len(address) > maxAddress:
		return "", fmt.Errorf("it has more than %d bytes", maxAddress)
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(address, "?#"):
		return "", errors.New("nothing goes behind the host and the port")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return "", errors.New("its port must be 1 to 65535")
		}
	}
	return u.Host, nil
}

// CheckPath says what is wrong with the path of a mount or of an entry: segments
// of letters, digits and a few signs. What would have to be escaped is refused,
// because servers differ in what they unescape.
func CheckPath(path string) error {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return errors.New("a path has no empty segment, and neither . nor .. as one")
		}
		for _, c := range []byte(segment) {
			plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.@:+", c) >= 0
			if !plain {
				return errors.New("a path has letters, digits and -_.@:+ between its slashes")
			}
		}
	}
	return nil
}

// New makes the source. Nothing is sent before the first fetch.
func New(o Options) (*Source, error) {
	host, err := CheckAddress(o.Address)
	switch {
	case !vault.ValidSourceName(o.Name):
		return nil, errors.New("a source's name has 1 to 32 of a-z, 0-9, '-' and '_'")
	case err != nil:
		return nil, fmt.Errorf("source %s: address: %w", o.Name, err)
	case o.Timeout <= 0 || o.Credential == nil:
		return nil, fmt.Errorf("source %s: it has no time-out or no credential", o.Name)
	}
	if o.AppRole == "" {
		o.AppRole = DefaultAppRole
	}
	roots, err := rootsOf(o)
	if err != nil {
		return nil, err
	}
	g := &guard{host: host, namespace: o.Namespace, next: transport(roots)}
	client, err := api.NewClient(&api.Config{
		Address: "https://" + host, HttpClient: &http.Client{Transport: g}, Timeout: o.Timeout,
		CheckRetry: never, DisableRedirects: true,
	})
	if err != nil { // it reads the environment first, whatever it is given
		return nil, fmt.Errorf("source %s: the library of the secret manager refuses; is a variable VAULT_… set to something that it cannot read?", o.Name)
	}
	client.ClearToken()
	client.SetHeaders(http.Header{})
	client.SetWrappingLookupFunc(func(string, string) string { return "" })
	s := &Source{o: o, client: client}
	s.login.gate = make(chan struct{}, 1)
	return s, nil
}

func rootsOf(o Options) (*x509.CertPool, error) {
	if o.CAPEM == nil {
		return nil, nil
	}
	if err := CheckCA(o.CAPEM); err != nil {
		return nil, fmt.Errorf("source %s: ca: %w", o.Name, err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(o.CAPEM)
	return roots, nil
}

// CheckCA says what is wrong with a file of roots.
func CheckCA(pem []byte) error {
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return errors.New("there is no certificate in PEM form in it")
	}
	return nil
}

// never sends nothing again: a fetch that failed is the caller's to repeat, and a
// write is compared first.
func never(context.Context, *http.Response, error) (bool, error) { return false, nil }

// transport opens a connection for each request: a fetch is rare, and an idle
// connection would outlive the lock of the vault.
func transport(roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            (&net.Dialer{Timeout: connectLimit}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    handshakeLimit,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// Name is the source's name.
func (s *Source) Name() string { return s.o.Name }

// Check reads a reference: MOUNT/PATH#FIELD, with ?version=N behind it where one
// version is wanted.
func (s *Source) Check(reference string) error {
	_, err := s.parse(reference)
	return err
}

// entry is one field of one entry.
type entry struct {
	mount, path, field string
	version            int64 // 0: the newest
}

func (s *Source) parse(reference string) (entry, error) {
	bad := func(text string) (entry, error) {
		return entry{}, fmt.Errorf("source %s: %w: %s; write MOUNT/PATH#FIELD", s.o.Name, vault.ErrBadReference, text)
	}
	if err := vault.CheckReferenceText(reference); err != nil {
		return entry{}, fmt.Errorf("source %s: %w", s.o.Name, err)
	}
	path, rest, found := strings.Cut(reference, "#")
	if !found {
		return bad("it names no field")
	}
	var e entry
	field, query, versioned := strings.Cut(rest, "?")
	if e.field = field; field == "" || strings.ContainsAny(field, "#\"\\") {
		return bad("the name of the field is empty or has a sign that is not taken")
	}
	if versioned {
		text, ok := strings.CutPrefix(query, "version=")
		n, err := strconv.ParseInt(text, 10, 32)
		if !ok || err != nil || n < 1 || strconv.FormatInt(n, 10) != text {
			return bad("behind ? only version= and a whole number from 1 is taken")
		}
		e.version = n
	}
	if err := CheckPath(path); err != nil {
		return bad(err.Error())
	}
	if s.o.Mount != "" {
		if e.path, found = strings.CutPrefix(path, s.o.Mount+"/"); !found {
			return bad("the mount of this source is " + s.o.Mount)
		}
		e.mount = s.o.Mount
	} else if e.mount, e.path, found = strings.Cut(path, "/"); !found {
		return bad("it names a mount and no path in it")
	}
	return e, nil
}

// Fetch reads one field, after a login where there is none.
func (s *Source) Fetch(ctx context.Context, reference string) (secret.Secret, error) {
	e, err := s.parse(reference)
	if err != nil {
		return secret.Secret{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	got, err := s.read(ctx, e)
	if err != nil {
		return secret.Secret{}, err
	}
	defer got.wipe()
	return s.pick(got, e)
}

// Store writes a field by check-and-set, and leaves the other fields as they are.
func (s *Source) Store(ctx context.Context, reference string, old, value secret.Secret) error {
	e, err := s.parse(reference)
	if err != nil {
		return err
	}
	if e.version != 0 {
		return fmt.Errorf("source %s: %w: a reference to one version is never written", s.o.Name, vault.ErrBadReference)
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	got, err := s.read(ctx, e)
	if err != nil {
		return err
	}
	defer got.wipe()
	done, err := s.compare(got, e, old, value)
	if done || err != nil {
		return err
	}
	err = s.write(ctx, e, got, value)
	if !errors.Is(err, errNotTaken) {
		return err
	}
	// Somebody else wrote in between, or the server does not take it at all.
	again, err := s.read(ctx, e)
	if err != nil {
		return err
	}
	defer again.wipe()
	if done, err := s.compare(again, e, old, value); done || err != nil {
		return err
	}
	if again.version != got.version {
		return fmt.Errorf("source %s: %w", s.o.Name, vault.ErrSourceChanged)
	}
	return s.fail(vault.ErrSourceDenied, "it does not take the new value (400)")
}

// compare says whether value is there already, and refuses where neither it nor
// old is.
func (s *Source) compare(got stored, e entry, old, value secret.Secret) (done bool, err error) {
	now, err := s.pick(got, e)
	if err != nil {
		return false, err
	}
	defer now.Wipe()
	switch {
	case now.Equal(value):
		return true, nil
	case now.Equal(old):
		return false, nil
	}
	return false, fmt.Errorf("source %s: %w", s.o.Name, vault.ErrSourceChanged)
}

// Tend renews the login before its end.
func (s *Source) Tend(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	s.tend(ctx)
}

// Drop forgets the login's token.
func (s *Source) Drop() { s.login.drop() }

func (s *Source) fail(kind error, format string, args ...any) error {
	return fmt.Errorf("source %s: %w: %s", s.o.Name, kind, fmt.Sprintf(format, args...))
}
