package upstream

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Phase is a place in an exchange at which a server can misbehave.
type Phase uint8

// The phases, in order. The zero value is nowhere.
const (
	Nowhere      Phase = iota
	AtAccept           // TCP is up, TLS has not begun
	BeforeRead         // TLS is up, nothing of the request is read
	BeforeAnswer       // the request is read whole
	MidHeaders         // half of the header block is written
	AfterHeaders       // the header block is written, no byte of the body
	MidBody            // half of the body is written
)

// Header is one header line, written as it stands.
type Header struct{ Name, Value string }

// Answer is one scripted answer. The zero value is "200 OK" with no body.
type Answer struct {
	Delay         time.Duration // before the first byte
	Informational int           // this many "103 Early Hints" first
	Status        int           // 200 where zero
	Headers       []Header      // in order, repeated names kept; framing is added where not written here
	Body          []byte
	Chunk         int           // chunked, in pieces of this many bytes; 0: Content-Length
	Trailers      []Header      // makes the body chunked
	Unframed      bool          // neither length nor chunks: the end of the connection ends the body
	Length        string        // what Content-Length says instead of the truth
	Raw           []byte        // everything from the status line on, instead of all the above but Delay
	Extra         []byte        // written behind the answer, in the same write
	Drip          time.Duration // one byte at a time, with this pause
	Hang          Phase         // go silent here until the other side gives up
	Close         Phase         // close here
	Reset         bool          // close by reset
	Last          bool          // close after a whole answer, saying nothing of it beforehand
}

// JSON is an answer with a JSON body.
func JSON(status int, body string) Answer {
	return Answer{Status: status, Headers: []Header{{"Content-Type", "application/json"}}, Body: []byte(body)}
}

// parts are an answer's bytes, cut where a phase may cut them.
type parts struct{ head, body, tail []byte }

// render makes the bytes of an answer to a request with the given method.
func (a Answer) render(method string) parts {
	if a.Raw != nil {
		head, body, _ := bytes.Cut(a.Raw, []byte("\r\n\r\n"))
		if len(head) == len(a.Raw) {
			return parts{head: a.Raw}
		}
		return parts{head: a.Raw[:len(head)+4], body: body}
	}
	var h bytes.Buffer
	for range a.Informational {
		h.WriteString("HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n")
	}
	status := a.Status
	if status == 0 {
		status = http.StatusOK
	}
	fmt.Fprintf(&h, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	for _, l := range a.Headers {
		h.WriteString(l.Name + ": " + l.Value + "\r\n")
	}
	chunked := a.Chunk > 0 || len(a.Trailers) > 0
	switch {
	case a.names("Content-Length") || a.names("Transfer-Encoding") || a.Unframed || bodiless(status):
	case chunked:
		h.WriteString("Transfer-Encoding: chunked\r\n")
	case a.Length != "":
		h.WriteString("Content-Length: " + a.Length + "\r\n")
	default:
		fmt.Fprintf(&h, "Content-Length: %d\r\n", len(a.Body))
	}
	h.WriteString("\r\n")
	p := parts{head: h.Bytes(), body: a.Body, tail: a.Extra}
	if chunked {
		p.body = a.chunks()
	}
	if method == http.MethodHead {
		p.body = nil
	}
	return p
}

func (a Answer) chunks() []byte {
	var b bytes.Buffer
	size := a.Chunk
	if size <= 0 {
		size = max(len(a.Body), 1)
	}
	for rest := a.Body; len(rest) > 0; {
		n := min(size, len(rest))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, rest[:n])
		rest = rest[n:]
	}
	b.WriteString("0\r\n")
	for _, t := range a.Trailers {
		b.WriteString(t.Name + ": " + t.Value + "\r\n")
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

func (a Answer) names(name string) bool {
	for _, h := range a.Headers {
		if strings.EqualFold(h.Name, name) {
			return true
		}
	}
	return false
}

func bodiless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}
