package executor

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// maxInformational is how many 1xx answers are passed over. Real services send
// one or two (100, 103).
const maxInformational = 8

// refusal is an answer that breaks a transport rule. Its text is ours alone:
// no byte of the answer is in it.
type refusal struct{ rule, why string }

func (r *refusal) Error() string { return r.rule + ": " + r.why }

// errEndless is a header block that does not end within its budget.
var errEndless = &refusal{RuleHeaderTooLarge, "the header block is larger than the limit"}

// readHead reads one header block, from the status line to the empty line,
// both included, and at most limit bytes.
func readHead(br *bufio.Reader, limit int64) ([]byte, error) {
	var head []byte
	for {
		line, err := br.ReadSlice('\n')
		if int64(len(head)+len(line)) > limit {
			return head, errEndless
		}
		head = append(head, line...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return head, err
		}
		if blank(head) {
			return head, nil
		}
	}
}

// blank says whether head ends with an empty line.
func blank(head []byte) bool {
	return bytes.HasSuffix(head, []byte("\n\r\n")) || bytes.HasSuffix(head, []byte("\n\n"))
}

// linesOf takes off the empty line at the end, and no more: a further CR belongs
// to the last header's value, where it is refused.
func linesOf(head string) []string {
	head = strings.TrimSuffix(strings.TrimSuffix(head, "\n"), "\r")
	return strings.Split(strings.TrimSuffix(head, "\n"), "\n")
}

// checkHead holds a header block to RFC 9112 and to what this package can
// frame without doubt, and returns the status.
func checkHead(head []byte) (int, error) {
	lines := linesOf(string(head))
	status, ok := statusOf(strings.TrimSuffix(lines[0], "\r"))
	if !ok {
		return 0, &refusal{RuleMalformedHead, "the first line is not an HTTP/1 status line"}
	}
	length, coding := 0, 0
	for _, l := range lines[1:] {
		name, value, err := fieldOf(strings.TrimSuffix(l, "\r"))
		if err != nil {
			return 0, err
		}
		switch strings.ToLower(name) {
		case "content-length":
			length++
			if !digits(value) {
				return 0, &refusal{RuleContentLength, "Content-Length is not one decimal number"}
			}
		case "transfer-encoding":
			coding++
			if !strings.EqualFold(value, "chunked") {
				return 0, &refusal{RuleTransferCoding, "Transfer-Encoding is not chunked alone"}
			}
		}
	}
	switch {
	case length > 1:
		return 0, &refusal{RuleContentLength, "several Content-Length headers"}
	case coding > 1:
		return 0, &refusal{RuleTransferCoding, "several Transfer-Encoding headers"}
	case length+coding > 1:
		return 0, &refusal{RuleContentLength, "Content-Length beside Transfer-Encoding"}
	}
	return status, nil
}

// namesOf are the names of a block that was checked, one a line.
func namesOf(head []byte) []byte {
	var out []byte
	for _, l := range linesOf(string(head))[1:] {
		if name, _, err := fieldOf(strings.TrimSuffix(l, "\r")); err == nil {
			out = append(append(out, name...), '\n')
		}
	}
	return out
}

// statusOf reads "HTTP/1.1 200 OK"; the reason phrase is ignored.
func statusOf(line string) (int, bool) {
	rest, ok := strings.CutPrefix(line, "HTTP/1.1 ")
	if !ok {
		rest, ok = strings.CutPrefix(line, "HTTP/1.0 ")
	}
	if !ok || len(rest) < 3 || !digits(rest[:3]) || len(rest) > 3 && rest[3] != ' ' {
		return 0, false
	}
	if strings.ContainsAny(rest, "\r\x00") {
		return 0, false
	}
	status := int(rest[0]-'0')*100 + int(rest[1]-'0')*10 + int(rest[2]-'0')
	return status, status >= 100
}

// fieldOf reads one header line. A continued line, a space before the colon
// and a control character are refused: readers differ about all three.
func fieldOf(line string) (name, value string, err error) {
	name, value, ok := strings.Cut(line, ":")
	if !ok || !httpguts.ValidHeaderFieldName(name) {
		return "", "", &refusal{RuleMalformedHead, "a header line has no proper name"}
	}
	value = strings.Trim(value, " \t")
	if !httpguts.ValidHeaderFieldValue(value) {
		return "", "", &refusal{RuleMalformedHead, "a header value has bytes that no header may have"}
	}
	return name, value, nil
}

// maxLengthDigits is the length of 2^63-1 without its last digit: longer
// numbers are lies.
const maxLengthDigits = 18

func digits(s string) bool {
	if s == "" || len(s) > maxLengthDigits {
		return false
	}
	return strings.Trim(s, "0123456789") == ""
}

// finalHead reads header blocks until one that is not informational. All of
// them share one budget.
func finalHead(br *bufio.Reader, limit int64) (head []byte, status int, err error) {
	for n := 0; ; n++ {
		head, err = readHead(br, limit)
		if err != nil {
			return head, 0, err
		}
		limit -= int64(len(head))
		status, err = checkHead(head)
		switch {
		case err != nil:
			return head, 0, err
		case status == 101:
			return head, status, &refusal{RuleSwitch, "the remote switched protocols, which nobody asked for"}
		case status >= 200:
			return head, status, nil
		case n >= maxInformational:
			return head, status, &refusal{RuleInformational, "too many informational answers"}
		}
	}
}

// headThenRest is the byte stream that the standard library parses: the block
// that was checked, then the connection.
func headThenRest(head []byte, br *bufio.Reader) *bufio.Reader {
	return bufio.NewReaderSize(io.MultiReader(bytes.NewReader(head), br), readBuffer)
}
