package contracttest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/actions"
)

// recordedAt is the moment of the calls below.
var recordedAt = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

func jsonHeader(more ...string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(more); i += 2 {
		h.Add(more[i], more[i+1])
	}
	return h
}

// What a real system answered becomes a fixture that the contract takes, without
// the persons and the secrets in it.
func TestRecord(t *testing.T) {
	o := writeWith(t, map[string]string{"get_thing": firm}, nil)
	body := `{"ok":true,"id":"a7","zone":"north","state":"ready","seen":"2026-01-05T10:00:04Z","count":4,"owner":{"name":"Ann Lee"},"parts":[{"name":"main","size":3,"token":"tok-123456","login":"annlee"}],"note":"by ann.lee@corp.test at 10.1.2.3\u001b[2J"}`
	got, err := Record(context.Background(), o, Recording{
		Action: "get_thing", Input: map[string]any{"id": "a7"}, Sent: recordedAt, Ended: recordedAt.Add(5 * time.Second),
		Answers: []RecordedAnswer{
			{Step: "request", Status: 200, Header: jsonHeader("Etag", `"x1"`, "Set-Cookie", "sid=abcdef", "X-Request-Id", "77"), Body: []byte(body)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	text := string(got.Text)
	for _, gone := range []string{"Ann", "Lee", "tok-123456", "annlee", "ann.lee", "10.1.2.3", "sid=", "Cookie", "\x1b"} {
		if strings.Contains(text, gone) {
			t.Errorf("%q is in the fixture:\n%s", gone, text)
		}
	}
	for _, there := range []string{"\"ETag\"", "north", "now: 2026-01-05T10:00:00Z", "ok: true", `input: {"id":"a7"}`, "person1@example.com"} {
		if !strings.Contains(text, there) && !strings.Contains(text, strings.Replace(there, "ETag", "Etag", 1)) {
			t.Errorf("no %q in the fixture:\n%s", there, text)
		}
	}
	if got.Kind != "accepted" || !got.Same || got.Got != "ok" || strings.Join(got.Dropped, " ") != "Set-Cookie X-Request-Id" || got.Replaced["e-mail address"] != 1 {
		t.Errorf("%+v", got)
	}
	// The file is a fixture like any other.
	dir := filepath.Join(o.Contracts, "get_thing", "fixtures")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "accepted-recorded.yaml"), got.Text, 0o600); err != nil {
		t.Fatal(err)
	}
	o.Actions, o.Mutate = []string{"get_thing"}, true
	rep, err := Run(context.Background(), o)
	if err != nil || !rep.OK() || rep.Holes() != 0 {
		t.Errorf("%v %+v", err, rep)
	}
}

// Calls that did not succeed, and what cannot be a fixture.
func TestRecordOtherEnds(t *testing.T) {
	o := writeWith(t, map[string]string{"get_thing": firm}, nil)
	record := func(code string, answers ...RecordedAnswer) (Recorded, error) {
		return Record(context.Background(), o, Recording{Action: "get_thing", Input: map[string]any{"id": "a7"}, Sent: recordedAt, Answers: answers, Code: code})
	}
	for name, c := range map[string]struct {
		answer     RecordedAnswer
		code, kind string
		want       string
	}{
		"not there":       {RecordedAnswer{Step: "request", Status: 404, Header: http.Header{}}, "NOT_FOUND", "failure", "code: NOT_FOUND"},
		"a changed shape": {RecordedAnswer{Step: "request", Status: 200, Header: jsonHeader(), Body: []byte(`{"things":[]}`)}, "INVALID_RESPONSE", "near-miss", "layer: schema"},
		"a page":          {RecordedAnswer{Step: "request", Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte("<p>it's\n\tbusy</p>")}, "INVALID_RESPONSE", "near-miss", "layer: outcome"},
		"no answer":       {RecordedAnswer{Step: "request"}, "UPSTREAM_UNAVAILABLE", "failure", "close: before_answer"},
	} {
		got, err := record(c.code, c.answer)
		if err != nil || got.Kind != c.kind || !got.Same || !strings.Contains(string(got.Text), c.want) {
			t.Errorf("%s: %v %+v\n%s", name, err, got, got.Text)
		}
	}
	if _, err := record("", RecordedAnswer{Step: "request", Status: 200, Header: jsonHeader(), Body: []byte("\xff\xfe")}); err == nil || !strings.Contains(err.Error(), "is no text") {
		t.Errorf("bytes that are no text: %v", err)
	}
	if got, err := record("", RecordedAnswer{Step: "request", Status: 500, Header: http.Header{}}); err != nil || got.Same {
		t.Errorf("another end than the real one: %v %+v", err, got)
	}
	if _, err := Record(context.Background(), o, Recording{Action: "no_such"}); err == nil || !strings.Contains(err.Error(), `"no_such"`) {
		t.Errorf("%v", err)
	}
}

// A signed answer is recorded with its claims; it is signed anew when it is
// played, by the key that stands for the real signer's.
func TestRecordSigned(t *testing.T) {
	dir := t.TempDir()
	o := Options{Site: filepath.Join(dir, "targets.yaml"), Contracts: filepath.Join(dir, "contracts")}
	for path, text := range map[string]string{"targets.yaml": evidenceSite, "signer.json": evidenceKeys(t), "contracts/get_review/contract.yaml": evidenceContract} {
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	part := func(v any) string {
		b, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	jws := part(map[string]any{"alg": "ES256", "kid": "k1"}) + "." + part(map[string]any{"iss": "https://sign.example", "aud": "deploys", "sub": "c1", "state": "approved", "exp": recordedAt.Add(time.Minute).Unix(), "email": "ann@corp.test"}) + ".c2lnbmF0dXJl"
	got, err := Record(context.Background(), o, Recording{
		Action: "get_review", Input: map[string]any{"change_id": "c1"}, Sent: recordedAt,
		Answers: []RecordedAnswer{{Step: "request", Status: 200, Header: jsonHeader(), Body: []byte(`{"state":"approved","evidence":"` + jws + `"}`)}},
	})
	if err != nil || got.Kind != "accepted" || !strings.Contains(string(got.Text), "${jws.evidence0}") || strings.Contains(string(got.Text), "ann@") {
		t.Errorf("%v %+v\n%s", err, got, got.Text)
	}
}

// recordedEach is how many fixtures of one contract are recorded: enough to meet
// its ways, and a test that takes seconds.
const recordedEach = 2

// An answer that a shipped contract accepts could have been a real one: it
// becomes a fixture that the contract takes as before.
func TestShippedAnswersCanBeRecorded(t *testing.T) {
	o := Options{Site: filepath.Join("..", "..", "contracts", "targets.yaml"), Contracts: filepath.Join("..", "..", "contracts")}
	set, problems := actions.LoadSet(o.Site, o.Contracts)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p, err := newPlayer(set, set.Contracts())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range set.Contracts() {
		fixtures, problems := readFixtures(o.Contracts, c)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		done := 0
		for _, fx := range fixtures {
			if kindOf(fx.path) != "accepted" || repeats(fx) || done == recordedEach {
				continue
			}
			done++
			rec := Recording{Action: c.Action(), Sent: fx.now}
			rec.Input, _ = fx.input.(map[string]any)
			for _, a := range fx.answers {
				r := RecordedAnswer{Step: a.step, Status: a.status, Header: http.Header{}, Body: a.body}
				for _, h := range a.headers {
					r.Header.Add(h.Name, h.Value)
				}
				if a.close != "" {
					r = RecordedAnswer{Step: a.step}
				}
				rec.Answers = append(rec.Answers, r)
			}
			got, err := p.record(t.Context(), c, rec)
			if err != nil || !got.Same || got.Kind != "accepted" {
				t.Errorf("%s: %v %s %s\n%s", fx.file, err, got.Got, got.Reason, got.Text)
			}
		}
	}
}

// repeats says that a fixture has what no record has: an answer again and again,
// or a value that is fixed for it.
func repeats(fx fixture) bool {
	for _, a := range fx.answers {
		if a.repeat || len(a.tokens) > 0 {
			return true
		}
	}
	return fx.idempotencyKey != "" || fx.callID != ""
}
