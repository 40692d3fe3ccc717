package upstream

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// maxRequest bounds what is read of one request.
const maxRequest = 8 << 20

// Request is one request exactly as it arrived.
type Request struct {
	N, Conn int    // which request of the server, which connection; from 1
	Raw     []byte // every byte, request line to body
	Method  string
	Target  string // as written in the request line
	Path    string // the target before "?"
	Query   string // the target behind "?"
	Proto   string
	Host    string
	Lines   []Header // the header lines as written, in order
	Body    []byte
	TLS     *tls.ConnectionState // nil for plain HTTP
}

// Header returns the header lines by canonical name.
func (r Request) Header() http.Header {
	h := http.Header{}
	for _, l := range r.Lines {
		h.Add(l.Name, l.Value)
	}
	return h
}

// Head returns the bytes before the body.
func (r Request) Head() []byte { return r.Raw[:len(r.Raw)-len(r.Body)] }

// readRequest reads one request. It takes what is written, and only what this
// module's executor writes: a Content-Length or no body.
func readRequest(br *bufio.Reader) (Request, error) {
	var raw bytes.Buffer
	var r Request
	line := func() (string, error) {
		s, err := br.ReadString('\n')
		raw.WriteString(s)
		if raw.Len() > maxRequest {
			return "", errors.New("the request is too long")
		}
		return strings.TrimSuffix(s, "\r\n"), err
	}
	first, err := line()
	if err != nil {
		return r, err
	}
	f := strings.Split(first, " ")
	if len(f) != 3 {
		return r, fmt.Errorf("the request line has %d parts", len(f))
	}
	r.Method, r.Target, r.Proto = f[0], f[1], f[2]
	r.Path, r.Query, _ = strings.Cut(r.Target, "?")
	length := 0
	for {
		l, err := line()
		if err != nil {
			return r, err
		}
		if l == "" {
			break
		}
		name, value, _ := strings.Cut(l, ": ")
		r.Lines = append(r.Lines, Header{name, value})
		switch strings.ToLower(name) {
		case "host":
			r.Host = value
		case "content-length":
			if length, err = strconv.Atoi(value); err != nil || length < 0 || length > maxRequest {
				return r, errors.New("the request's length is not usable")
			}
		}
	}
	r.Body = make([]byte, length)
	_, err = io.ReadFull(br, r.Body)
	r.Raw = append(raw.Bytes(), r.Body...)
	return r, err
}
