package vault

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"chatelaine/internal/fault"
)

// Limits of a binding's texts; all are far above what occurs.
const (
	maxBindingText = 1024
	maxPins        = 16
)

// notCredentialHeaders carry framing or routing; a credential in one of them
// would change where or how the request goes.
var notCredentialHeaders = []string{
	"connection", "content-encoding", "content-length", "content-type", "expect", "host", "keep-alive",
	"te", "trailer", "transfer-encoding", "upgrade",
}

// check says whether the binding is one that can be kept.
func (b Binding) check() error {
	if err := b.checkKind(); err != nil {
		return err
	}
	for _, s := range append([]string{b.Prefix, b.Username, b.CADigest, b.BasePath, b.Host}, b.Pins...) {
		if len(s) > maxBindingText || strings.ContainsFunc(s, isControl) {
			return fmt.Errorf("%w: its binding holds a control character or more than %d bytes in one text", ErrBadIdentity, maxBindingText)
		}
	}
	if err := b.checkPlace(); err != nil {
		return err
	}
	if len(b.Pins) > maxPins || !slices.IsSorted(b.Pins) || slices.Contains(b.Pins, "") || len(slices.Compact(slices.Clone(b.Pins))) != len(b.Pins) {
		return fmt.Errorf("%w: its pins must be at most %d different ones", ErrBadIdentity, maxPins)
	}
	return nil
}

func (b Binding) checkKind() error {
	switch b.Kind {
	case KindBearer:
		if b.Header+b.Prefix+b.Username != "" {
			return fmt.Errorf("%w: kind bearer takes no header, prefix or user name", ErrBadIdentity)
		}
	case KindHeader:
		name := strings.ToLower(b.Header)
		if b.Username != "" || !httpguts.ValidHeaderFieldName(b.Header) || len(b.Header) > maxName ||
			slices.Contains(notCredentialHeaders, name) || strings.HasPrefix(name, "proxy-") {
			return fmt.Errorf("%w: kind header needs the name of a header that may hold a credential, and no user name", ErrBadIdentity)
		}
	case KindBasic:
		if b.Header+b.Prefix != "" || b.Username == "" || strings.Contains(b.Username, ":") {
			return fmt.Errorf("%w: kind basic needs a user name without a colon (RFC 7617 section 2), and no header or prefix", ErrBadIdentity)
		}
	case KindNone:
		return fmt.Errorf("%w: kind none has nothing to store", ErrBadIdentity)
	default:
		return fmt.Errorf("%w: its kind is not one of bearer, header, basic", ErrBadIdentity)
	}
	return nil
}

// checkPlace holds the destination to one spelling, so that comparing it is
// comparing bytes.
func (b Binding) checkPlace() error {
	switch {
	case b.Scheme != "https" && (b.Scheme != "http" || !loopback(b.Host)):
		return fmt.Errorf("%w: its scheme must be https, or http for a loopback host", ErrBadIdentity)
	case b.Host == "" || b.Host != strings.ToLower(b.Host) || strings.HasSuffix(b.Host, ".") || strings.ContainsAny(b.Host, "/@%\\ "):
		return fmt.Errorf("%w: its host must be a plain name or address in lower case", ErrBadIdentity)
	case b.Port < 1 || b.Port > 65535:
		return fmt.Errorf("%w: its port must be 1 to 65535", ErrBadIdentity)
	case !cleanPath(b.BasePath):
		return fmt.Errorf("%w: its base path must be empty or begin with '/', without empty, '.' or '..' segments", ErrBadIdentity)
	}
	return nil
}

// loopback says whether a host needs no encryption to be reached alone.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && a.IsLoopback()
}

// cleanPath takes "" and paths whose segments are all plain, also for a server
// that decodes them once more.
func cleanPath(p string) bool {
	if p == "" {
		return true
	}
	if p[0] != '/' || strings.ContainsAny(p, "\\?#") {
		return false
	}
	low := strings.ToLower(p)
	for _, bad := range []string{"%2e", "%2f", "%5c", "%00"} {
		if strings.Contains(low, bad) {
			return false
		}
	}
	for _, s := range strings.Split(p[1:], "/") {
		if s == "" || s == "." || s == ".." {
			return false
		}
	}
	return true
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// normal gives a binding its one spelling before it is checked and kept.
func (b Binding) normal() Binding {
	b.Host = strings.ToLower(b.Host)
	b.BasePath = strings.TrimSuffix(b.BasePath, "/")
	b.Pins = slices.Clone(b.Pins)
	slices.Sort(b.Pins)
	return b
}

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
	for _, c := range s {
		if isControl(rune(c)) {
			return fmt.Errorf("%w: the secret holds a control character or a line end", ErrBadIdentity)
		}
	}
	if b.Kind == KindBasic {
		return nil
	}
	if s[0] == ' ' || s[len(s)-1] == ' ' || !httpguts.ValidHeaderFieldValue(b.Prefix+string(s)) {
		return fmt.Errorf("%w: the secret cannot be a header value", ErrBadIdentity)
	}
	return nil
}

// allows compares the binding with the connection that was really made. Each
// part must be the same; the site file may only have narrowed: a deeper base
// path, fewer pins, or pins where the binding has none.
func (b Binding) allows(c Made) error {
	host := strings.ToLower(c.Host)
	switch {
	case b.Scheme != c.Scheme:
		return notAllowed("scheme", b.Scheme, c.Scheme)
	case b.Host != host:
		return notAllowed("host", b.Host, host)
	case b.Port != c.Port:
		return notAllowed("port", b.Port, c.Port)
	case b.CADigest != c.CADigest:
		return notAllowed("CA", b.CADigest, c.CADigest)
	case !b.allowsPath(c.BasePath):
		return notAllowed("base path", b.BasePath, c.BasePath)
	}
	return b.allowsPins(c)
}

// Fits asks what a lease will say of a connection before there is one: whether
// the site file still names the destination that the secret is bound to. That
// the peer will show a pinned key is taken for granted here.
func (b Binding) Fits(c Made) error {
	c.PeerSPKI = b.Pins
	return b.allows(c)
}

func (b Binding) allowsPath(made string) bool {
	made = strings.TrimSuffix(made, "/")
	return cleanPath(made) && (made == b.BasePath || strings.HasPrefix(made, b.BasePath+"/"))
}

// allowsPins needs the peer itself to have shown a pinned key, whatever the
// site file says about pins.
func (b Binding) allowsPins(c Made) error {
	if len(b.Pins) == 0 {
		return nil
	}
	if len(c.Pins) == 0 {
		return notAllowed("pins", len(b.Pins), 0)
	}
	for _, p := range c.Pins {
		if !slices.Contains(b.Pins, p) {
			return notAllowed("pins", "the bound ones", "others")
		}
	}
	for _, k := range c.PeerSPKI {
		if slices.Contains(b.Pins, k) {
			return nil
		}
	}
	return notAllowed("peer key", "a pinned one", "none of them")
}

// notAllowed is for the operator; it shows addresses, which are no secret.
func notAllowed(part string, bound, made any) error {
	return fault.Newf(fault.TargetNotAllowed, "the identity is bound to another destination: %s is %q, bound %q; rebind the identity if that is meant",
		part, fmt.Sprint(made), fmt.Sprint(bound))
}

func (b Binding) encode(w *writer) {
	for _, s := range []string{b.Kind, b.Header, b.Prefix, b.Username, b.Scheme, b.Host, b.BasePath, b.CADigest} {
		w.str(s)
	}
	w.u16(uint16(b.Port))
	w.u8(uint8(len(b.Pins)))
	for _, p := range b.Pins {
		w.str(p)
	}
}

func decodeBinding(r *reader) Binding {
	var b Binding
	for _, s := range []*string{&b.Kind, &b.Header, &b.Prefix, &b.Username, &b.Scheme, &b.Host, &b.BasePath, &b.CADigest} {
		*s = r.str(maxBindingText)
	}
	b.Port = int(r.u16())
	for range r.u8() {
		b.Pins = append(b.Pins, r.str(maxBindingText))
	}
	return b
}

// clone gives callers pins of their own.
func (b Binding) clone() Binding {
	b.Pins = slices.Clone(b.Pins)
	return b
}
