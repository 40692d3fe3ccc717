package executor

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"chatelaine/internal/fault"
)

// agentHeader is sent where the contract names no User-Agent: some services
// refuse requests without one. It names no version, so that an upgrade of the
// daemon changes nothing on the wire.
const agentHeader = "chatelaine"

// ours are the headers that only this package writes. Neither a contract, nor a
// target, nor a credential may.
var ours = map[string]bool{
	"Host": true, "Content-Length": true, "Content-Type": true, "Transfer-Encoding": true,
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true, "Trailer": true,
	"Upgrade": true, "Expect": true, "Accept-Encoding": true, "Proxy-Authorization": true, "Cookie": true,
}

// check looks once more at a finished request before anything is opened. What
// it refuses should have been refused by the contract loader, so that it is
// our own fault.
func (s step) check() error {
	switch {
	case s.to.scheme != schemeHTTP && s.to.scheme != schemeHTTPS:
		return errors.New("the target has no scheme that is known here")
	case s.to.host == "" || !visible(s.to.host) || strings.ContainsAny(s.to.host, "/?#@\\"):
		return errors.New("the target has no usable host")
	case s.to.port < 1 || s.to.port > 65535:
		return errors.New("the target has no usable port")
	case !methods[s.method]:
		return errors.New("the request's method is not known")
	case len(s.body) > 0 && (s.method == http.MethodGet || s.method == http.MethodHead):
		return errors.New("a request that only reads has a body")
	case len(s.body) > 0 && s.contentType == "":
		return errors.New("the body has no content type")
	case !httpguts.ValidHeaderFieldValue(s.contentType):
		return errors.New("the content type is not a header value")
	}
	if err := s.checkPath(); err != nil {
		return err
	}
	return checkHeader(s.header)
}

// methods are those that a contract can name.
var methods = map[string]bool{
	http.MethodGet: true, http.MethodHead: true, http.MethodPost: true,
	http.MethodPut: true, http.MethodPatch: true, http.MethodDelete: true,
}

// checkPath holds the request line: only visible ASCII, under the base path,
// and without a segment that a server could read as a way out of it.
func (s step) checkPath() error {
	if !strings.HasPrefix(s.path, "/") || strings.ContainsAny(s.path, "?#\\") || !visible(s.path) {
		return errors.New("the path is not an escaped path")
	}
	if strings.Contains(s.query, "#") || !visible(s.query) {
		return errors.New("the query is not an encoded query")
	}
	if b := s.to.basePath; b != "" && s.path != b && !strings.HasPrefix(s.path, strings.TrimSuffix(b, "/")+"/") {
		return errors.New("the path lies outside the target's base path")
	}
	for _, seg := range strings.Split(s.path, "/") {
		plain, err := url.PathUnescape(seg)
		if err != nil || climbs(plain) {
			return errors.New("the path has a segment that is . or .. or not escaped rightly")
		}
	}
	return nil
}

// climbs says whether a decoded segment holds a part that means "here" or "up"
// to a server that decodes escaped slashes.
func climbs(segment string) bool {
	for _, part := range strings.FieldsFunc(segment, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

// checkHeader refuses headers that are not the contract's to write, and values
// that would break out of their line. It never quotes a value.
func checkHeader(h http.Header) error {
	for name, values := range h {
		if !httpguts.ValidHeaderFieldName(name) {
			return errors.New("a header's name is not a token")
		}
		if ours[textproto.CanonicalMIMEHeaderKey(name)] {
			return fmt.Errorf("the header %s is written by the executor alone", name)
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return fmt.Errorf("the value of the header %s has bytes that no header may have", name)
			}
		}
	}
	return nil
}

// attach lets the credential write into a copy of the headers and proves that
// it added at most one line and changed none.
func (s step) attach(c Credential, facts Connection) (http.Header, string, *stop) {
	h := s.header.Clone()
	if h == nil {
		h = http.Header{}
	}
	if c == nil {
		return h, "", nil
	}
	if err := c.Attach(h, facts); err != nil {
		return nil, "", attachStop(err)
	}
	added, err := attached(s.header, h)
	if err != nil {
		clear(h)
		return nil, "", stopped(PhaseAttach, fault.Internal, err)
	}
	return h, added, nil
}

// attachStop keeps a coded refusal and makes any other TARGET_NOT_ALLOWED.
func attachStop(err error) *stop {
	if coded, ok := errors.AsType[*fault.Error](err); ok {
		return &stop{PhaseAttach, coded}
	}
	return stopped(PhaseAttach, fault.TargetNotAllowed, err)
}

// attached returns the name of the one header that was added, "" for none.
func attached(before, after http.Header) (string, error) {
	added := ""
	for name, values := range after {
		old, was := before[name]
		switch {
		case was && slices.Equal(old, values):
		case was, added != "", len(values) != 1:
			return "", errors.New("the credential is not exactly one new header line")
		default:
			added = name
		}
	}
	for name := range before {
		if _, still := after[name]; !still || added != "" && strings.EqualFold(name, added) {
			return "", errors.New("the credential replaced a header of the request")
		}
	}
	if added == "" {
		return "", nil
	}
	return added, checkHeader(http.Header{added: after[added]})
}

// encode writes the whole request as HTTP/1.1 (RFC 9112): one spelling, with
// headers in alphabetical order.
func (s step) encode(h http.Header) []byte {
	target := s.path
	if s.query != "" {
		target += "?" + s.query
	}
	b := make([]byte, 0, 1024+len(s.body))
	b = append(b, s.method+" "+target+" HTTP/1.1\r\n"...)
	line := func(name, value string) {
		b = append(b, name...)
		b = append(b, ": "...)
		b = append(b, value...)
		b = append(b, "\r\n"...)
	}
	line("Host", s.hostHeader())
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, v := range h[name] {
			line(name, v)
		}
	}
	s.ownLines(h, line)
	b = append(b, "\r\n"...)
	return append(b, s.body...)
}

// ownLines writes the headers that are ours.
func (s step) ownLines(h http.Header, line func(name, value string)) {
	if _, ok := h["User-Agent"]; !ok {
		line("User-Agent", agentHeader)
	}
	line("Accept-Encoding", "identity")
	if s.contentType != "" {
		line("Content-Type", s.contentType)
	}
	if len(s.body) > 0 || s.method != http.MethodGet && s.method != http.MethodHead {
		line("Content-Length", strconv.Itoa(len(s.body)))
	}
	if !s.reuse {
		line("Connection", "close")
	}
}

// hostHeader is the target's authority; the scheme's own port is left out
// (RFC 9110, section 7.2).
func (s step) hostHeader() string {
	host := s.to.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if s.to.scheme == schemeHTTPS && s.to.port == 443 || s.to.scheme == schemeHTTP && s.to.port == 80 {
		return host
	}
	return net.JoinHostPort(s.to.host, strconv.Itoa(s.to.port))
}

// visible says whether s has nothing but visible ASCII.
func visible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
