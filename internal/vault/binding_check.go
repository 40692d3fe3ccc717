package vault

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/net/http/httpguts"
)

// Limits of a binding's texts; all are far above what occurs.
const (
	maxBindingText = 1024
	maxPins        = 16
	maxParamName   = 64
	maxParamValue  = 56 << 10 // GitHub takes 500 repositories of 100 letters
	maxHostKeys    = 16
	maxHostKey     = 4096 // RSA of 16,384 bits is below
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
	k := kindRules[b.Kind]
	if err := errors.Join(b.checkParams(k), b.checkSSHParams()); err != nil {
		return err
	}
	for _, s := range []string{b.Prefix, b.Username, b.User} {
		if len(s) > maxBindingText || strings.ContainsFunc(s, isControl) {
			return fmt.Errorf("%w: its binding holds a control character or more than %d bytes in one text", ErrBadIdentity, maxBindingText)
		}
	}
	switch {
	case b.Token == nil && k.token == tokenMust:
		return fmt.Errorf("%w: kind %s needs the place where its secret is exchanged", ErrBadIdentity, b.Kind)
	case b.Token != nil && k.token == tokenNone:
		return fmt.Errorf("%w: the secret of kind %s goes to the target alone", ErrBadIdentity, b.Kind)
	}
	if b.Token != nil {
		if err := b.Token.check(); err != nil {
			return fmt.Errorf("the place of its exchange: %w", err)
		}
	}
	if k.ssh {
		return b.checkSSH()
	}
	if b.User != "" || len(b.HostKeys) > 0 {
		return fmt.Errorf("%w: kind %s has no SSH user and no host keys", ErrBadIdentity, b.Kind)
	}
	if b.Kind == KindClientCertificate && b.Scheme != "https" {
		return fmt.Errorf("%w: a client certificate is shown in a TLS handshake, so its scheme must be https", ErrBadIdentity)
	}
	if strings.HasSuffix(b.BasePath, "/") {
		return fmt.Errorf("%w: its base path must not end with '/'", ErrBadIdentity)
	}
	return b.place().check()
}

func (b Binding) checkKind() error {
	name := strings.ToLower(b.Header)
	if _, known := kindRules[b.Kind]; !known {
		if b.Kind == KindNone {
			return fmt.Errorf("%w: kind none has nothing to store", ErrBadIdentity)
		}
		return fmt.Errorf("%w: its kind is not one of %s", ErrBadIdentity, strings.Join(slices.Sorted(maps.Keys(kindRules)), ", "))
	}
	switch {
	case b.Kind == KindHeader:
		if b.Username != "" || !httpguts.ValidHeaderFieldName(b.Header) || len(b.Header) > maxName ||
			slices.Contains(notCredentialHeaders, name) || strings.HasPrefix(name, "proxy-") {
			return fmt.Errorf("%w: kind header needs the name of a header that may hold a credential, and no user name", ErrBadIdentity)
		}
	case b.Kind == KindBasic:
		if b.Header+b.Prefix != "" || b.Username == "" || strings.Contains(b.Username, ":") {
			return fmt.Errorf("%w: kind basic needs a user name without a colon (RFC 7617 section 2), and no header or prefix", ErrBadIdentity)
		}
	case b.Header+b.Prefix+b.Username != "":
		return fmt.Errorf("%w: kind %s takes no header, prefix or user name", ErrBadIdentity, b.Kind)
	}
	return nil
}

// place is the destination as one place.
func (b Binding) place() Place {
	return Place{Scheme: b.Scheme, Host: b.Host, Port: b.Port, Path: b.BasePath, CADigest: b.CADigest, Pins: b.Pins}
}

// check holds a place to one spelling, so that comparing it is comparing bytes.
func (p Place) check() error {
	for _, s := range append([]string{p.CADigest, p.Path, p.Host}, p.Pins...) {
		if len(s) > maxBindingText || strings.ContainsFunc(s, isControl) {
			return fmt.Errorf("%w: its binding holds a control character or more than %d bytes in one text", ErrBadIdentity, maxBindingText)
		}
	}
	switch {
	case p.Scheme != "https" && (p.Scheme != "http" || !loopback(p.Host)):
		return fmt.Errorf("%w: its scheme must be https, or http for a loopback host", ErrBadIdentity)
	case !plainHost(p.Host):
		return fmt.Errorf("%w: its host must be a plain name or address in lower case", ErrBadIdentity)
	case p.Port < 1 || p.Port > 65535:
		return fmt.Errorf("%w: its port must be 1 to 65535", ErrBadIdentity)
	case !cleanPath(strings.TrimSuffix(p.Path, "/")):
		return fmt.Errorf("%w: its base path must be empty or begin with '/', without empty, '.' or '..' segments", ErrBadIdentity)
	case len(p.Pins) > maxPins || !isSet(p.Pins):
		return fmt.Errorf("%w: its pins must be at most %d different ones", ErrBadIdentity, maxPins)
	}
	return nil
}

func plainHost(h string) bool {
	return h != "" && h == strings.ToLower(h) && !strings.HasSuffix(h, ".") && !strings.ContainsAny(h, "/@%\\ ")
}

// isSet says whether the texts are sorted, different and not empty.
func isSet(all []string) bool {
	last := ""
	for _, s := range all {
		if s <= last {
			return false
		}
		last = s
	}
	return true
}

// checkSSH holds the destination of an SSH kind to one spelling.
func (b Binding) checkSSH() error {
	switch {
	case b.Scheme != schemeSSH:
		return fmt.Errorf("%w: kind %s is for SSH targets only", ErrBadIdentity, b.Kind)
	case len(b.Host) > maxBindingText || strings.ContainsFunc(b.Host, isControl) || !plainHost(b.Host):
		return fmt.Errorf("%w: its host must be a plain name or address in lower case", ErrBadIdentity)
	case b.Port < 1 || b.Port > 65535:
		return fmt.Errorf("%w: its port must be 1 to 65535", ErrBadIdentity)
	case b.BasePath != "" || b.CADigest != "" || len(b.Pins) > 0:
		return fmt.Errorf("%w: an SSH target has no path, CA or pins", ErrBadIdentity)
	case b.User == "" || strings.ContainsAny(b.User, "@: "):
		return fmt.Errorf("%w: an SSH target needs the user to log in as", ErrBadIdentity)
	case len(b.HostKeys) == 0 || len(b.HostKeys) > maxHostKeys || !isSet(b.HostKeys):
		return fmt.Errorf("%w: an SSH target needs 1 to %d different host keys", ErrBadIdentity, maxHostKeys)
	}
	for _, k := range b.HostKeys {
		if len(k) > maxHostKey || !isHostKey(k) {
			return fmt.Errorf("%w: a host key is a type and base64, as ssh-keyscan prints them, without a comment", ErrBadIdentity)
		}
	}
	return nil
}

// isHostKey says whether a text is the one spelling of a public key. A
// certificate is none: its life is not the key's.
func isHostKey(text string) bool {
	k, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil || len(rest) > 0 {
		return false
	}
	if _, cert := k.(*ssh.Certificate); cert {
		return false
	}
	return strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(k)), "\n") == text
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
