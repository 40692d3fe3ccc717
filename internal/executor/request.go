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
	if err := s.checkHole(); err != nil {
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

// encode writes the whole request as HTTP/1.1 (RFC 9112): one spelling, with
// headers in alphabetical order.
func (s step) encode(o *outgoing) []byte {
	h := o.lines()
	target := s.path
	if s.query != "" {
		target += "?" + s.query
	}
	b := make([]byte, 0, s.room(o))
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
	s.ownLines(o, line)
	b = append(b, "\r\n"...)
	return s.appendBody(b, o)
}

// ownLines writes the headers that are ours.
func (s step) ownLines(o *outgoing, line func(name, value string)) {
	if _, ok := s.header["User-Agent"]; !ok {
		line("User-Agent", agentHeader)
	}
	line("Accept-Encoding", "identity")
	if s.contentType != "" {
		line("Content-Type", s.contentType)
	}
	if n := len(s.body) + len(o.fill); n > 0 || s.method != http.MethodGet && s.method != http.MethodHead {
		line("Content-Length", strconv.Itoa(n))
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
