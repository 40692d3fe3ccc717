package kv

import (
	"bytes"
	"encoding/json/jsontext"
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/vault/api"
)

// The parser copies values out of an answer, and those copies are cleared too.
func TestNothingOfAnAnswerIsLeft(t *testing.T) {
	s := open(t, Options{Name: "bao", Address: "https://bao.example", Timeout: time.Second, Credential: given("x")})
	whole := []byte(`{"data":{"data":{"token":"` + planted + `"},"metadata":{"version":1}},"auth":{"client_token":"` + planted + `"}}`)
	r, err := s.answer(&api.Response{Response: &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: &body{b: whole}}})
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string][]byte{"answer": whole, "field": r.Data.Data["token"], "login": r.Auth.Token}
	for name, b := range parts {
		if !bytes.Contains(b, []byte(planted)) {
			t.Fatalf("%s: the secret is not there", name)
		}
	}
	r.wipe()
	for name, b := range parts {
		if bytes.Contains(b, []byte(planted)) {
			t.Errorf("%s: the secret is still there", name)
		}
	}
}

// Room that is taken once is not outgrown, whatever has to be escaped.
func TestQuotedRoom(t *testing.T) {
	for _, text := range []string{"", "plain", "\x00\x01\x1f\"\\<>&\u2028\x7fé"} {
		if n := len(quoted(t, text)); n > quotedRoom(len(text)) {
			t.Errorf("%q takes %d bytes, and there is room for %d", text, n, quotedRoom(len(text)))
		}
	}
}

func quoted(t *testing.T, text string) []byte {
	t.Helper()
	b, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
