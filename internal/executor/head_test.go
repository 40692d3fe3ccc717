package executor

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"testing"
)

// FuzzHead: what passes the strict reader is read by the standard library with
// the same status, and no input costs more than its budget.
func FuzzHead(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nA: b\r\n\r\n", "HTTP/1.0 404\r\n\r\n", "HTTP/1.1 200 OK\nA:b\n\n",
		"HTTP/1.1 103 x\r\n\r\nHTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 101 x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 00\r\n\r\n", "\r\n\r\n", "HTTP/1.1 099 x\r\n\r\n", "HTTP/1.1 200 OK\r\r\n\r\n",
		"HTTP/1.1 200 \nA:\r\r\n\n", "HTTP/1.1 200 OK\r\nA: b\r\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	const budget = 4 << 10
	f.Fuzz(func(t *testing.T, b []byte) {
		br := bufio.NewReaderSize(bytes.NewReader(b), readBuffer)
		head, status, err := finalHead(br, budget)
		if len(head) > budget {
			t.Fatalf("%d bytes of header for a budget of %d", len(head), budget)
		}
		if err != nil {
			return
		}
		resp, err := http.ReadResponse(headThenRest(head, br), &http.Request{Method: http.MethodGet})
		if err != nil {
			t.Fatalf("accepted, but the standard library says %v: %q", err, head)
		}
		if resp.StatusCode != status || status < 200 {
			t.Fatalf("status %d against %d", status, resp.StatusCode)
		}
		if _, err := checkHead(head); errors.As(err, new(*refusal)) {
			t.Fatal("refused the second time")
		}
	})
}
