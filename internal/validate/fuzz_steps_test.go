package validate

import (
	"net/http"
	"testing"
)

// FuzzProveSteps feeds hostile answers to a poll and to a reconcile: a proof or a
// rejection and never both, what is pending is no end, and only a row of the
// contract says that a request took effect.
func FuzzProveSteps(f *testing.F) {
	for _, body := range []string{`{"state":"done"}`, `{"state":"running"}`, `{"state":"failed"}`, `{"state":7}`, `{}`, `null`, `{"state":"done","state":"running"}`, `[`, ``} {
		for _, status := range []int{200, 202, 404, 408, 429, 503, 401} {
			f.Add(status, "application/json", []byte(body))
		}
	}
	poll := mustReader(f, ReaderSpec{Step: StepPoll, Change: true, Rows: []RowSpec{
		{Name: "done", Status: []int{200}, When: equalsSpec("/state", "done"), HasSuccess: true},
		{Name: "failed", Status: []int{200}, When: equalsSpec("/state", "failed"), Failure: &FailureSpec{Code: "RUN_FAILED"}},
		{Name: "pending", Status: []int{200, 202}, Pending: true},
	}})
	reconcile := mustReader(f, ReaderSpec{Step: StepReconcile, Change: true, Rows: []RowSpec{
		{Name: "took", Status: []int{200}, When: equalsSpec("/state", "done"), HasSuccess: true, TookEffect: &tookIt},
	}})
	f.Fuzz(func(t *testing.T, status int, contentType string, body []byte) {
		raw := Raw{Status: status, Header: http.Header{"Content-Type": {contentType}}, Body: body}
		for _, r := range []*Reader{poll, reconcile} {
			p, no := r.Prove(raw, testScope, testNow)
			if (p == nil) == (no == nil) {
				t.Fatal("neither or both")
			}
			if no != nil {
				if p.OK() || p.Pending() {
					t.Fatalf("refused and an end: %+v", no)
				}
				continue
			}
			effect, said := p.TookEffect()
			if p.Pending() && (p.OK() || said || r == reconcile) {
				t.Fatalf("pending and an end: %+v", p)
			}
			if said && (r == poll || p.Row() != "took" || !effect || !p.OK()) {
				t.Fatalf("row %q says that it took effect: %v", p.Row(), effect)
			}
		}
	})
}
