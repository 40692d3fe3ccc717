package kv

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"mime"
	"net/http"

	"chatelaine/internal/secret"
)

// What the guard refuses. The library wraps them, and errors.Is finds them.
var (
	errElsewhere = errors.New("a request to another place than the source's address")
	errRedirect  = errors.New("the answer sends elsewhere")
	errTooLarge  = errors.New("the answer is too large")
	errEncoded   = errors.New("the answer is compressed")
	errNotJSON   = errors.New("the answer is not JSON")
	errCut       = errors.New("the answer was cut or came too slowly")
)

// tokenKey carries the token of a request from this package to the guard, past
// the library, which would keep it as a string.
type tokenKey struct{}

func withToken(ctx context.Context, token secret.Secret) context.Context {
	return context.WithValue(ctx, tokenKey{}, token)
}

// guard stands between the library and the socket. Whatever the library or the
// environment meant, a request goes to the one address, with these headers only;
// and an answer is read whole, within its bounds, before the library sees it.
type guard struct {
	host, namespace string
	next            http.RoundTripper
}

// RoundTrip performs one request.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" || r.URL.Host != g.host || r.URL.User != nil {
		return nil, errElsewhere
	}
	out := r.Clone(r.Context())
	out.Host, out.GetBody = g.host, nil
	out.Header = http.Header{"X-Vault-Request": {"true"}, "Accept": {"application/json"}}
	if g.namespace != "" {
		out.Header.Set("X-Vault-Namespace", g.namespace)
	}
	if r.Body != nil && r.Body != http.NoBody {
		out.Header.Set("Content-Type", "application/json")
	}
	if token, ok := r.Context().Value(tokenKey{}).(secret.Secret); ok {
		token.Use(func(b []byte) { out.Header.Set("X-Vault-Token", string(b)) })
	}
	resp, err := g.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if err := check(resp); err != nil {
		return nil, err
	}
	resp, err = whole(resp)
	if err == nil && r.Context().Err() != nil {
		// A server that sees the connection close may end its answer as if it were
		// whole, and that may still arrive.
		clear(resp.Body.(*body).b)
		return nil, errCut
	}
	return resp, err
}

// check looks at the head of an answer.
func check(resp *http.Response) error {
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return errRedirect
	case resp.Header.Get("Content-Encoding") != "":
		return errEncoded
	case resp.StatusCode >= 400 || resp.StatusCode == http.StatusNoContent:
		return nil
	}
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return errNotJSON
	}
	return nil
}

// whole reads the body into one piece of memory, which the parser clears.
func whole(resp *http.Response) (*http.Response, error) {
	buf, n := make([]byte, maxAnswer+1), 0
	for {
		m, err := resp.Body.Read(buf[n:])
		n += m
		switch {
		case n > maxAnswer:
			clear(buf)
			return nil, errTooLarge
		case errors.Is(err, io.EOF):
			resp.Body = &body{Reader: bytes.NewReader(buf[:n]), b: buf[:n]}
			resp.ContentLength = int64(n)
			return resp, nil
		case err != nil:
			clear(buf)
			return nil, errCut
		}
	}
}

// body is an answer in memory.
type body struct {
	*bytes.Reader
	b []byte
}

// Close is for the library; the bytes are cleared by who parsed them.
func (*body) Close() error { return nil }

// isTrust says that the server did not show a certificate that is trusted.
func isTrust(err error) bool {
	var verify *tls.CertificateVerificationError
	return errors.As(err, &verify)
}
