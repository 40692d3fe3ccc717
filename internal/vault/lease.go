package vault

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"sync"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// errLeaseClosed is a mistake of ours: a credential is asked for after the call
// was over.
var errLeaseClosed = errors.New("the lease is closed")

// Outgoing is a request that is about to be sent, as far as a credential may
// change it.
type Outgoing interface {
	// SetHeader adds one header line. It fails where the request has that header,
	// and at the second call.
	SetHeader(name, value string) error
	// FillBody lets write append the credential to the body where its hole is, at
	// most once. It fails where the request has none. write's slice is not kept.
	FillBody(write func(dst []byte) []byte) error
	// Hole says whether the body has a place for a credential, and whether that
	// is form text; else it is the text of a JSON string.
	Hole() (form, ok bool)
}

// Lease is one identity for the length of one call. It can attach the
// credential and look for it, and yields it to nobody. It stays good when the
// vault locks or the identity is replaced meanwhile: whoever sends asks the
// vault again before that. It is safe for concurrent use.
type Lease struct {
	none       bool
	trial      bool   // the secret is not the stored one
	name       string // for errors
	source     string // where the secret lies, "" for the vault; of a trial "" too where a person gave it
	binding    Binding
	generation uint64
	cred       secret.Secret
	scanner    *secret.Scanner
	closed     sync.Once
	release    func()

	vault *Vault // for exchanges; nil for none
	own   tokens // of a trial, whose secret nobody else has

	mu     sync.Mutex      // guards all below, and cred of a trial
	keys   []secret.Secret // of certificates that were made for this lease
	tokens []*heldToken    // that Ready brought, the last one is attached
	key    tokenKey        // of that one
	over   bool
}

// NoLease is the lease of an identity of kind none: it attaches nothing and
// finds nothing. Its generation is 0.
func NoLease() *Lease { return &Lease{none: true} }

// Lease opens an identity for one call. It fails with VAULT_LOCKED or
// IDENTITY_UNAVAILABLE. The caller closes it.
func (v *Vault) Lease(ctx context.Context, name string) (*Lease, error) {
	l, err := v.lease(ctx, name)
	if fault.CodeOf(err) == fault.VaultLocked && v.CheckOpen() == nil {
		// The data key was replaced while it was in use here; the vault is open.
		return v.lease(ctx, name)
	}
	return l, err
}

func (v *Vault) lease(ctx context.Context, name string) (*Lease, error) {
	o, err := v.current()
	if err != nil {
		return nil, err
	}
	it, err := v.usable(o, name)
	if err != nil {
		return nil, err
	}
	var s secret.Secret // of a kind that is exchanged it is read when it is sent
	if !it.binding.Exchanges() {
		if s, err = v.secretOf(ctx, o, it); err != nil {
			return nil, err
		}
	}
	l, err := v.take(it, s)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.noteLeaseLocked(it)
	return l, nil
}

// take makes the lease of an item over its secret, which the lease wipes.
func (v *Vault) take(it item, s secret.Secret) (*Lease, error) {
	scanner := it.binding.newScanner(s)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state != StateOpen {
		s.Wipe()
		scanner.Wipe()
		return nil, errLocked()
	}
	v.leases++
	v.auto.touch()
	return &Lease{name: it.name, source: it.source, binding: it.binding.clone(), generation: it.generation, cred: s, scanner: scanner, vault: v, release: v.returned}, nil
}

func (v *Vault) returned() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.leases--
}

// Generation returns which generation of the identity this is.
func (l *Lease) Generation() uint64 { return l.generation }

// Attach compares the identity's binding with the connection that was really
// made and, only if they agree, writes the credential into out. It fails with
// TARGET_NOT_ALLOWED, and with INTERNAL where out has a value in that place
// already, has no place for it, or the lease is closed; out is then as it was.
func (l *Lease) Attach(out Outgoing, c Made) error {
	if l == nil {
		return fault.New(fault.Internal, errLeaseClosed)
	}
	if l.none {
		return nil
	}
	if err := l.binding.allows(c); err != nil {
		return err
	}
	if l.binding.Exchanges() {
		return l.setToken(out)
	}
	switch l.binding.Kind {
	case KindClientCertificate:
		return nil // it was shown in the handshake
	case KindBody:
		return l.fillBody(out)
	case KindBearer, KindHeader, KindBasic:
		return l.setHeader(out)
	}
	return fault.Newf(fault.Internal, "kind %s attaches nothing to a request", l.binding.Kind)
}

func (l *Lease) setHeader(out Outgoing) error {
	name, value := "Authorization", ""
	l.cred.Use(func(b []byte) {
		if len(b) == 0 {
			return
		}
		switch l.binding.Kind {
		case KindBearer:
			value = "Bearer " + string(b)
		case KindHeader:
			name, value = http.CanonicalHeaderKey(l.binding.Header), l.binding.Prefix+string(b)
		case KindBasic:
			text := append(append(make([]byte, 0, len(l.binding.Username)+1+len(b)), l.binding.Username+":"...), b...)
			value = "Basic " + base64.StdEncoding.EncodeToString(text)
			clear(text)
		}
	})
	if value == "" {
		return fault.New(fault.Internal, errLeaseClosed)
	}
	if err := out.SetHeader(name, value); err != nil {
		return fault.Newf(fault.Internal, "the %s header cannot be written: %w", name, err)
	}
	return nil
}

// Scan searches foreign bytes for the credential in every encoding that
// package secret knows. It finds nothing after Close.
func (l *Lease) Scan(b []byte) []secret.Hit {
	if l == nil {
		return nil
	}
	if !l.none && l.binding.Exchanges() {
		return l.scanTokens(b)
	}
	return l.scanner.Scan(b)
}

// Close wipes the credential. It may be called more than once.
func (l *Lease) Close() {
	if l == nil || l.none {
		return
	}
	l.closed.Do(func() {
		l.mu.Lock()
		l.cred.Wipe()
		for _, k := range l.keys {
			k.Wipe()
		}
		l.releaseTokens()
		l.mu.Unlock()
		l.scanner.Wipe()
		l.release()
	})
}
