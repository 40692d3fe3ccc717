package validate

import (
	"net/http"
	"strings"
	"testing"
)

// FuzzProve feeds hostile answers to a whole reader: it never panics, gives a
// proof or a rejection and never both, and what it proves obeys the schema and
// holds no member that was not declared.
func FuzzProve(f *testing.F) {
	for _, s := range []string{goodBody, `{"error":"locked"}`, `{"error":1003}`, `null`, strings.Replace(goodBody, "hi", `\u202e\u0000`, 1), goodBody + " x"} {
		for _, status := range []int{200, 409, 422, 404, 503, 204} {
			f.Add(status, "application/json", "", []byte(s))
		}
	}
	f.Add(200, "text/plain; charset=utf-8", "gzip", []byte("x"))
	r := mustReader(f, deploySpec(f))
	f.Fuzz(func(t *testing.T, status int, contentType, encoding string, body []byte) {
		h := http.Header{"Content-Type": {contentType}}
		if encoding != "" {
			h.Set("Content-Encoding", encoding)
		}
		p, no := r.Prove(Raw{Status: status, Header: h, Body: body}, testScope, testNow)
		if (p == nil) == (no == nil) {
			t.Fatal("neither or both")
		}
		if no != nil {
			if p.OK() || no.Layer == "" || no.Rule == "" || no.Message == "" || len(no.Error()) > 4096 {
				t.Fatalf("%+v", no)
			}
			return
		}
		if !p.OK() {
			if code, _ := p.Failure(); code == "" && status != 204 {
				t.Fatalf("an end without a code: %+v", p)
			}
			return
		}
		if v := r.result.Validate(p.Data()); v != nil {
			t.Fatalf("%+v", v)
		}
		for name := range p.Data() {
			if _, ok := r.rows[0].success.by[name]; !ok {
				t.Fatalf("an undeclared member %q", name)
			}
		}
		if text := p.Display()["note"].Text; len([]rune(text)) > 10 || strings.ContainsAny(text, "\x00\u202e") {
			t.Fatalf("%q", text)
		}
	})
}
