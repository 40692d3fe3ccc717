package contracttest

import (
	"net/http"
	"testing"

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
