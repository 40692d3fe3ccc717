package executor

import (
	"bufio"
	"errors"
	"io"
	"net/http"

	"golang.org/x/net/http/httpguts"
)

// answer is what one reading of an HTTP/1 answer gave, whole or not.
type answer struct {
	answered bool // a final header block came and was proper
	status   int
	header   http.Header
	names    []byte // of the header block, as they were written
	trailer  http.Header
	body     []byte
	tooLarge bool
	reusable bool  // the connection ended in a known state
	err      error // nil: whole; *refusal: a rule; else the connection failed
}

// readHeader reads up to the end of the final header block.
func (w *wire) readHeader(method string, limit int64) (*http.Response, *bufio.Reader, answer) {
	head, status, err := finalHead(w.br, limit)
	if err != nil {
		if _, ok := errors.AsType[*refusal](err); !ok {
			err = w.wording(err, RuleMalformedHead, "the header block cannot be read")
		}
		return nil, nil, answer{err: err}
	}
	rest := headThenRest(head, w.br)
	resp, err := http.ReadResponse(rest, &http.Request{Method: method})
	if err != nil {
		return nil, nil, answer{err: w.wording(err, RuleMalformedHead, "the header block cannot be read")}
	}
	return resp, rest, answer{answered: true, status: status, header: resp.Header, names: namesOf(head)}
}

// readBody reads the body and its trailers. At most limit bytes are kept; one
// more is read to know that there is more.
func (w *wire) readBody(a *answer, resp *http.Response, rest *bufio.Reader, limit int64) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	a.tooLarge = int64(len(body)) > limit
	a.body, a.trailer = body[:min(int64(len(body)), limit)], resp.Trailer
	switch {
	case a.tooLarge:
		a.err = &refusal{RuleBodyTooLarge, "the body is larger than the limit"}
	case err != nil:
		a.err = w.wording(err, RuleChunk, "the body's chunks or trailers cannot be read")
	case rest.Buffered()+w.br.Buffered() > 0:
		a.err = &refusal{RuleExtraBytes, "bytes follow the end of the answer"}
	case !validFields(resp.Trailer):
		a.err = &refusal{RuleTrailer, "a trailer has bytes that no trailer may have"}
	case len(a.header.Values("Content-Encoding")) > 0:
		a.err = &refusal{RuleContentEncoding, "the body is encoded, which nobody asked for"}
	}
	a.reusable = a.err == nil && !resp.Close && resp.ProtoAtLeast(1, 1) && w.src.err == nil
}

// wording makes a refusal of a parser's complaint, unless it was the
// connection that failed. The parser's own text quotes the remote, so that it
// is never used.
func (w *wire) wording(err error, rule, why string) error {
	if w.src.err != nil {
		if w.src.err == io.EOF {
			return errors.New("the remote closed the connection before the end of its answer")
		}
		return w.src.err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the answer was cut")
	}
	return &refusal{rule, why}
}

// validFields says whether trailers could stand in a header block.
func validFields(h http.Header) bool {
	for name, values := range h {
		if !httpguts.ValidHeaderFieldName(name) {
			return false
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return false
			}
		}
	}
	return true
}
