package vault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"chatelaine/internal/secret"
)

// Source is a place outside the vault that keeps secrets of identities: a secret
// manager, a program, the service manager's credentials. The vault then holds a
// sealed reference in place of the secret, and the binding as ever.
//
// Each call ends in bounded time and with a bounded answer; the vault then holds that
// to what the identity's kind takes. Errors wrap one of ErrSource…, and never hold a
// byte of the answer.
type Source interface {
	// Name is what a reference begins with: 1 to 32 of a-z, 0-9, '-' and '_'.
	Name() string
	// Check says what is wrong with a reference, without asking anybody. It
	// answers ErrBadReference.
	Check(reference string) error
	// Fetch reads the secret that the reference names. The caller wipes it.
	Fetch(ctx context.Context, reference string) (secret.Secret, error)
}

// Keeper is a source that also takes a new value in place of an old one.
type Keeper interface {
	Source
	// Store writes value where old is, and leaves the rest of the entry as it is.
	// It answers ErrSourceChanged, and has written nothing, where something else
	// is there by now; where value is there already it answers nil. So of two
	// daemons that share an entry one learns that the other was faster.
	Store(ctx context.Context, reference string, old, value secret.Secret) error
}

// Tender is a source that has something to do between fetches, such as renewing
// its own login. Drop forgets whatever it holds of a secret.
type Tender interface {
	Tend(ctx context.Context)
	Drop()
}

// What can be wrong with a source. The text around them says what to do.
var (
	ErrSourceAbsent      = errors.New("there is no such secret")
	ErrSourceLocked      = errors.New("it is locked")
	ErrSourceUnavailable = errors.New("it is not available")
	ErrSourceDenied      = errors.New("it refuses")
	ErrSourceLying       = errors.New("its answer cannot be used")
	ErrSourceChanged     = errors.New("another value is there by now")
	ErrNoSource          = errors.New("there is no such source")
	ErrBadReference      = errors.New("the reference cannot be used")
)

// sourceKinds are the words for the errors above, for status and log.
var sourceKinds = []struct {
	err  error
	word string
}{
	{ErrSourceAbsent, "absent"}, {ErrSourceLocked, "locked"}, {ErrSourceUnavailable, "unavailable"},
	{ErrSourceDenied, "denied"}, {ErrSourceLying, "lying"}, {ErrSourceChanged, "changed"},
	{ErrNoSource, "unknown"}, {ErrBadReference, "reference"},
}

// SourceKind names what is wrong in one word of a closed list; "" for nil and
// "unavailable" for an error that is none of them, such as an ended context.
func SourceKind(err error) string {
	if err == nil {
		return ""
	}
	for _, k := range sourceKinds {
		if errors.Is(err, k.err) {
			return k.word
		}
	}
	return "unavailable"
}

// IsSource says whether an error is what a source answered.
func IsSource(err error) bool {
	for _, k := range sourceKinds {
		if errors.Is(err, k.err) {
			return true
		}
	}
	return false
}

const (
	// maxSourceName and maxReference hold a reference to what fits a line of a
	// table; no path of a secret manager that people type is longer.
	maxSourceName = 32
	maxReference  = 512
)

// SplitSource takes "NAME:REFERENCE" apart. It answers ErrBadReference and quotes
// nothing: somebody may have given the secret itself.
func SplitSource(text string) (name, reference string, err error) {
	name, reference, found := strings.Cut(text, ":")
	if !found || !ValidSourceName(name) {
		return "", "", fmt.Errorf("%w: write NAME:REFERENCE, where NAME is one of vault.sources in chatelaine.yaml", ErrBadReference)
	}
	return name, reference, CheckReferenceText(reference)
}

// ValidSourceName says whether a source may have this name.
func ValidSourceName(name string) bool {
	if name == "" || len(name) > maxSourceName {
		return false
	}
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '_') {
			return false
		}
	}
	return true
}

// CheckReferenceText holds what every reference has in common: 1 to 512 bytes of
// text that can be printed, and nothing that a program would take for a flag.
func CheckReferenceText(reference string) error {
	switch {
	case reference == "" || len(reference) > maxReference:
		return fmt.Errorf("%w: it must have 1 to %d bytes", ErrBadReference, maxReference)
	case !utf8.ValidString(reference):
		return fmt.Errorf("%w: it is not UTF-8", ErrBadReference)
	case reference[0] == '-':
		return fmt.Errorf("%w: it must not begin with '-'", ErrBadReference)
	}
	for _, c := range reference {
		if !unicode.IsPrint(c) {
			return fmt.Errorf("%w: it has a character that cannot be printed", ErrBadReference)
		}
	}
	return nil
}

// CutLineEnd takes one line end off the end of a secret that a person or a program
// wrote as a line.
func CutLineEnd(b []byte) []byte {
	if rest, ok := bytes.CutSuffix(b, []byte("\n")); ok {
		return bytes.TrimSuffix(rest, []byte("\r"))
	}
	return b
}
