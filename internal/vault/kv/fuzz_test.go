package kv

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/vault/api"

	"chatelaine/internal/vault"
)

// Whatever a server answers, it is an entry with a version or an error of the
// closed list, and no error has a piece of it.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "null", "[]", `{"data":{"data":{"token":"planted-in-it-9Zt"},"metadata":{"version":1}}}`,
		`{"data":{"data":{"token":"a","token":"planted-in-it-9Zt"},"metadata":{"version":1}}}`, `{"data":{"data":null,"metadata":{"version":2,"deletion_time":"x"}}}`,
		`{"auth":{"client_token":"planted-in-it-9Zt","lease_duration":1e99}}`, `{"errors":["planted-in-it-9Zt"]}`, strings.Repeat("[", 200), `{"data":{"data":{"token":"\ud800"},"metadata":{"version":1}}}`,
	} {
		f.Add([]byte(seed), 200)
		f.Add([]byte(seed), 404)
		f.Add([]byte(seed), 503)
	}
	s, err := New(Options{Name: "bao", Address: "https://bao.example", Timeout: time.Second, Credential: given("x")})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, answer []byte, status int) {
		respond := func() *api.Response {
			return &api.Response{Response: &http.Response{StatusCode: status, Header: http.Header{}, Body: &body{b: append([]byte(nil), answer...)}}}
		}
		refuse := func(err error) {
			if !vault.IsSource(err) || strings.Contains(err.Error(), "planted") {
				t.Errorf("another error: %v", err)
			}
		}
		if token, le, err := s.granted(respond()); err != nil {
			refuse(err)
		} else if token.IsZero() || le.life < 0 {
			t.Error("a login without a token")
		}
		refuse(s.status(respond()))
		r, err := s.answer(respond())
		if err != nil {
			refuse(err)
			return
		}
		if r.Data == nil {
			return
		}
		got, err := s.pick(stored{fields: r.Data.Data}, entry{field: "token"})
		if err != nil {
			refuse(err)
		} else if got.IsZero() {
			t.Error("an empty secret")
		}
	})
}
