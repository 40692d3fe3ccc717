package gateway

import (
	"net/http"
	"testing"

	"chatelaine/internal/auditlog"
)

// A credential that comes back as the name of a header is found, although headers are
// handed on with other capitals; the record has nothing of it.
func TestCredentialInAHeaderName(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		r := newRig(t, whoAmI)
		r.vault.secret = "PLANTED-creDENtial-0001"
		r.remote.answer(func(string, string, string) reply {
			return reply{status: 200, body: `{"login":"robot"}`, header: http.Header{"X-" + r.vault.secret: {"x"}}}
		})
		e := r.call("who_am_i", "named-00001", "{}")
		r.want(e, "INVALID_RESPONSE")
		r.hides(e.raw)
		answers := r.events(auditlog.TypeAnswer)
		for _, e := range r.opened() {
			if e.EventID == answers[0].EventID && string(e.Body) != headHeld+`{"login":"robot"}` {
				t.Errorf("the record has %q", e.Body)
			}
		}
		if r.vault.suspects != 1 {
			t.Errorf("%d suspicions", r.vault.suspects)
		}
	})
}
