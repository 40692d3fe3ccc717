package vault

import (
	"crypto"
	"fmt"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"chatelaine/internal/secret"
)

// checkSecret says whether the secret can be sent the way the binding wants.
// Its errors name the rule, never the secret.
func (b Binding) checkSecret(s []byte, short bool) error {
	switch {
	case len(s) == 0:
		return fmt.Errorf("%w: the secret is empty", ErrBadIdentity)
	case len(s) > b.maxSecret():
		return fmt.Errorf("%w: the secret is longer than %d bytes", ErrBadIdentity, b.maxSecret())
	case len(s) < minSecret && !short:
		return fmt.Errorf("%w: the secret is shorter than %d bytes; say that it is meant to be short", ErrBadIdentity, minSecret)
	}
	switch b.formOf() {
	case formBody:
		if !utf8.Valid(s) {
			return fmt.Errorf("%w: the secret is not UTF-8, so no body can hold it as text", ErrBadIdentity)
		}
		return nil
	case formText:
		return checkLine(s)
	case formGrant:
		return b.checkGrant(s)
	case formHeader:
		if err := checkLine(s); err != nil {
			return err
		}
		if s[0] == ' ' || s[len(s)-1] == ' ' {
			return fmt.Errorf("%w: the secret begins or ends with a space, which no header keeps; was it pasted with one?", ErrBadIdentity)
		}
		if !httpguts.ValidHeaderFieldValue(b.Prefix + string(s)) {
			return fmt.Errorf("%w: the secret cannot be a header value", ErrBadIdentity)
		}
		return nil
	}
	if err := b.checkKeys(s, time.Now()); err != nil {
		return fmt.Errorf("%w: the secret cannot be used: %w", ErrBadIdentity, err)
	}
	return nil
}

// maxSecret is how long a secret may be: PEM is longer than what goes into a
// header.
func (b Binding) maxSecret() int {
	switch b.formOf() {
	case formCertificate, formKey, formSSHKey:
		return maxPEM
	}
	return maxSecret
}

// checkKeys reads a secret that is a key.
func (b Binding) checkKeys(s []byte, now time.Time) error {
	switch b.formOf() {
	case formCertificate:
		o, err := parseCertificate(s)
		if err != nil {
			return err
		}
		return o.checkTime(now)
	case formSSHKey:
		_, err := parseSSHKey(s)
		return err
	case formKey:
		_, err := b.parseTokenKey(s)
		return err
	}
	return fmt.Errorf("kind %s has no key", b.Kind)
}

func checkLine(s []byte) error {
	for _, c := range s {
		if isControl(rune(c)) {
			return fmt.Errorf("%w: the secret holds a control character or a line end", ErrBadIdentity)
		}
	}
	return nil
}

// expiry is when the secret stops working: what it says itself, or what a person
// said, whichever comes first.
func (b Binding) expiry(s secret.Secret, said time.Time) time.Time {
	if b.formOf() != formCertificate {
		return said
	}
	s.Use(func(text []byte) {
		o, err := parseCertificate(text)
		if err == nil && (said.IsZero() || o.chain[0].NotAfter.Before(said)) {
			said = o.chain[0].NotAfter
		}
	})
	return said
}

// newScanner searches answers for the secret, or for what of a key is nobody
// else's.
func (b Binding) newScanner(s secret.Secret) *secret.Scanner {
	if b.Exchanges() {
		return nil // it never goes to a target; the token is searched for
	}
	parse := parseKey
	switch b.formOf() {
	case formCertificate:
		parse = func(text []byte) (crypto.Signer, error) {
			o, err := parseBundle(text)
			return o.key, err
		}
	case formSSHKey:
		parse = parseSSHKey
	default:
		return secret.NewScanner(s)
	}
	var out *secret.Scanner
	err := useKey(s, parse, func(key crypto.Signer) error {
		parts := privateParts(key)
		out = secret.NewScanner(parts...)
		for _, p := range parts {
			p.Wipe()
		}
		return nil
	})
	if err != nil { // it was not put like this; better too much than nothing
		return secret.NewScanner(s)
	}
	return out
}
