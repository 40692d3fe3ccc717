package contracttest

import (
	"crypto/sha256"
	"net/http"
	"slices"
	"testing"
	"time"

	"chatelaine/internal/validate"
)

// An answer that a poll meets again makes no near-misses of its own; one that
// differs in anything that a row can read does.
func TestAnAnswerIsMutatedOnce(t *testing.T) {
	header := func(v string) http.Header { return http.Header{"Content-Type": {"application/json"}, "Etag": {v}} }
	base := provedAnswer{step: "poll", raw: validate.Raw{Status: 200, Header: header("a"), Body: []byte(`{"id":1}`)}}
	same := provedAnswer{step: "poll", raw: validate.Raw{Status: 200, Header: header("a"), Body: []byte(`{"id":1}`)}}
	if !same.repeats(base) {
		t.Error("the same answer is taken for another one")
	}
	for name, other := range map[string]provedAnswer{
		"step":   {step: "request", raw: base.raw},
		"status": {step: "poll", raw: validate.Raw{Status: 202, Header: header("a"), Body: base.raw.Body}},
		"header": {step: "poll", raw: validate.Raw{Status: 200, Header: header("b"), Body: base.raw.Body}},
		"body":   {step: "poll", raw: validate.Raw{Status: 200, Header: header("a"), Body: []byte(`{"id":2}`)}},
	} {
		if other.repeats(base) {
			t.Errorf("an answer with another %s is taken for the same", name)
		}
	}
}

// An answer of another fixture stands for one only where the calls are the same
// and all answers up to there: a later step's scope holds what they gave.
func TestAnAnswerIsMutatedOnceForAllFixtures(t *testing.T) {
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	answer := func(step, body string) provedAnswer {
		return provedAnswer{step: step, raw: validate.Raw{Status: 200, Body: []byte(body)}}
	}
	fx := func(input, call string, ok bool, trace ...provedAnswer) played {
		return played{fx: fixture{action: "a", input: map[string]any{"id": input}, now: at, callID: call}, ok: ok, trace: trace}
	}
	look, other, request := answer("look", "1"), answer("look", "2"), answer("request", "3")
	met := map[[sha256.Size]byte]bool{}
	for _, c := range []struct {
		name string
		pl   played
		want []bool
	}{
		{"one that does not play", fx("x", "c", false, look, request), []bool{false, false}},
		{"the first", fx("x", "c", true, look, request), []bool{false, false}},
		{"the same", fx("x", "c", true, look, request), []bool{true, true}},
		{"another end", fx("x", "c", true, look, answer("request", "4")), []bool{true, false}},
		{"another look", fx("x", "c", true, other, request), []bool{false, false}},
		{"another input", fx("y", "c", true, look, request), []bool{false, false}},
		{"another call", fx("x", "d", true, look, request), []bool{false, false}},
		{"a poll", fx("x", "c", true, look, request, answer("poll", "5"), answer("poll", "5")), []bool{true, true, false, true}},
	} {
		if got := metBefore(met, c.pl); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
