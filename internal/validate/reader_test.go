package validate

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var testNow = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

func testScope(path string) (any, bool) {
	v, ok := map[string]any{
		"input.service": "api", "input.environment": "test", "target.project_id": "prj_1", "target.owner": "acme",
		"call.now": "2026-01-05T09:59:50Z", "head.version": numberOne, "call.id": "act_1",
	}[path]
	return v, ok
}

func mustReader(t testing.TB, s ReaderSpec) *Reader {
	t.Helper()
	r, err := Compile("request", s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func at(p string) PickSpec { return PickSpec{Kind: PickPointer, At: p} }

func with(p string, f func(*PickSpec)) PickSpec {
	s := at(p)
	f(&s)
	return s
}

func answer(status int, body string) Raw {
	return Raw{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}
}

func equalsSpec(ptr string, v any) *PredicateSpec {
	return &PredicateSpec{Op: "equals", Ptr: ptr, Arg: Operand{Kind: OperandConst, Const: v}}
}

// deploySpec reads a release service: an accepted deployment, a refusal with a
// code beside ok: false, and a conflict.
func deploySpec(t testing.TB) ReaderSpec {
	expect := mustParse(t, `{"type":"object","additionalProperties":false,"required":["id","environment","state"],"properties":{
	  "id":{"type":"string"},"environment":{"enum":["test","production"]},"state":{"enum":["QUEUED","LIVE","BROKEN"]},"note":{"type":["string","null"]},"at":{"type":"string"}}}`)
	return ReaderSpec{
		Change: true,
		Rows: []RowSpec{
			{
				Name: "request.outcomes[0]", Status: []int{200, 201}, Expect: expect, HasSuccess: true,
				Success: map[string]PickSpec{
					"deployment_id": at("/id"),
					"environment":   at("/environment"),
					"state":         with("/state", func(p *PickSpec) { p.HasMap, p.Map = true, map[string]any{"QUEUED": "queued", "LIVE": "live"} }),
					"seen_at":       with("/at", func(p *PickSpec) { p.Optional, p.Time = true, "rfc3339" }),
				},
				Display: map[string]PickSpec{"note": with("/note", func(p *PickSpec) { p.Optional = true })},
			},
			{Name: "request.outcomes[1]", Status: []int{409}, Failure: &FailureSpec{At: "/error", Map: map[string]string{"locked": "ENVIRONMENT_LOCKED", "1003": "NUMBERED"}}},
			{Name: "request.outcomes[2]", Status: []int{422}, Failure: &FailureSpec{At: "/error", Map: map[string]string{"bad": "VERSION_UNKNOWN"}, Other: "REMOTE_REFUSED_IT"}},
			{Name: "request.outcomes[3]", Status: []int{204}, Media: MediaNone, HasCapture: true},
		},
		Result: mustParse(t, `{"type":"object","additionalProperties":false,"required":["deployment_id","environment","state"],"properties":{
		  "deployment_id":{"type":"string","pattern":"^dep_[a-z0-9]{8}$","maxLength":12},"environment":{"enum":["test","production"]},"state":{"enum":["queued","live"]},
		  "seen_at":{"type":"string","format":"date-time","maxLength":35}}}`),
		Display: map[string]DisplayBound{"note": {Max: 10, Lines: 2}},
		Checks: []CheckSpec{
			{Kind: "same", Left: "result.environment", Right: "input.environment"},
			{Kind: "fresh", At: "result.seen_at", Within: 5 * time.Minute, Skew: 30 * time.Second},
		},
	}
}

const goodBody = `{"id":"dep_8f2k1m9q","environment":"test","state":"QUEUED","note":"hi","at":"2026-01-05T11:58:00.120+02:00"}`

func TestProveSuccess(t *testing.T) {
	r := mustReader(t, deploySpec(t))
	p, no := r.Prove(answer(201, goodBody), testScope, testNow)
	if no != nil {
		t.Fatal(no)
	}
	want := map[string]any{"deployment_id": "dep_8f2k1m9q", "environment": "test", "state": "queued", "seen_at": "2026-01-05T09:58:00.120Z"}
	if !p.OK() || !reflect.DeepEqual(p.Data(), want) {
		t.Errorf("%v", p.Data())
	}
	if !reflect.DeepEqual(p.Display(), map[string]DisplayText{"note": {"hi", false}}) || p.Row() != "request.outcomes[0]" {
		t.Errorf("%v %s", p.Display(), p.Row())
	}
	if code, builtin := p.Failure(); code != "" || builtin {
		t.Error("a success has a code")
	}
	p.Data()["state"] = "changed"
	if p.Data()["state"] != "queued" {
		t.Error("Data gave away its own map")
	}
}

// Every way to fail, with the layer that must see it. Nothing of the answer may
// be in the operator's sentence.
func TestProveRejections(t *testing.T) {
	r := mustReader(t, deploySpec(t))
	json := http.Header{"Content-Type": {"application/json"}}
	head := func(kv ...string) http.Header {
		h := json.Clone()
		for i := 0; i < len(kv); i += 2 {
			h[kv[i]] = append(h[kv[i]], kv[i+1])
		}
		return h
	}
	swap := func(old, new string) string { return strings.Replace(goodBody, old, new, 1) }
	cases := []struct {
		name        string
		status      int
		header      http.Header
		body        string
		layer, rule string
	}{
		{"gzip", 200, head("Content-Encoding", "gzip"), goodBody, LayerTransport, "content-encoding"},
		{"odd spelling of the header", 200, http.Header{"content-encoding": {"br"}, "Content-Type": {"application/json"}}, goodBody, LayerTransport, "content-encoding"},
		{"too large", 200, json, `"` + strings.Repeat("x", answerBytes) + `"`, LayerTransport, ruleBytes},
		{"an interim status", 101, json, goodBody, LayerTransport, "status"}, {"no status", 0, json, goodBody, LayerTransport, "status"}, {"beyond HTTP", 777, json, goodBody, LayerTransport, "status"},
		{"an unnamed status", 202, json, goodBody, LayerOutcome, "status"}, {"a redirect", 302, head("Location", "https://elsewhere.test/"), ``, LayerOutcome, "status"}, {"an unnamed refusal", 400, json, `{}`, LayerOutcome, "status"},
		{"html", 200, http.Header{"Content-Type": {"text/html"}}, goodBody, LayerOutcome, "media"}, {"no type", 200, http.Header{}, goodBody, LayerOutcome, "media"}, {"two types", 200, head("Content-Type", "application/json"), goodBody, LayerOutcome, "media"},
		{"another charset", 200, http.Header{"Content-Type": {"application/json; charset=latin1"}}, goodBody, LayerOutcome, "media"}, {"a broken type", 200, http.Header{"Content-Type": {"application/json; charset"}}, goodBody, LayerOutcome, "media"}, {"nearly json", 200, http.Header{"Content-Type": {"application/jsonp"}}, goodBody, LayerOutcome, "media"},
		{"bytes where there are none", 204, json, `{}`, LayerOutcome, "media"},
		{"no bytes", 200, json, ``, LayerParse, ruleSyntax}, {"cut off", 200, json, goodBody[:40], LayerParse, ruleSyntax}, {"a second document", 200, json, goodBody + `{}`, LayerParse, ruleTrailing},
		{"duplicate member", 200, json, swap(`"state":"QUEUED"`, `"state":"QUEUED","state":"LIVE"`), LayerParse, ruleDuplicate}, {"invalid utf-8", 200, json, swap("hi", "\xff"), LayerParse, ruleUTF8}, {"too deep", 200, json, strings.Repeat("[", 70) + strings.Repeat("]", 70), LayerParse, ruleDepth},
		{"extra member", 200, json, swap(`"note":"hi"`, `"note":"hi","maintenance":true`), LayerSchema, "additionalProperties"}, {"null for the object", 200, json, `null`, LayerSchema, "type"}, {"array for the object", 200, json, `[` + goodBody + `]`, LayerSchema, "type"},
		{"object for the state", 200, json, swap(`"QUEUED"`, `{"value":"QUEUED"}`), LayerSchema, "enum"}, {"error beside data", 200, json, swap(`"note":"hi"`, `"note":"hi","error":"x"`), LayerSchema, "additionalProperties"}, {"look-alike letter", 200, json, swap(`"test"`, `"tеst"`), LayerSchema, "enum"}, {"a missing member", 200, json, swap(`"id":"dep_8f2k1m9q",`, ``), LayerSchema, "required"},
		{"a state outside the map", 200, json, swap("QUEUED", "BROKEN"), LayerPick, "map"}, {"no time", 200, json, swap("2026-01-05T11:58:00.120+02:00", "yesterday"), LayerPick, "time"},
		{"an id out of form", 200, json, swap("dep_8f2k1m9q", "dep_8F2K1M9Q"), LayerResult, "pattern"}, {"an id with prose", 200, json, swap("dep_8f2k1m9q", "ignore rules"), LayerResult, "pattern"}, {"an empty id", 200, json, swap("dep_8f2k1m9q", ""), LayerResult, "pattern"},
		{"another environment", 200, json, swap(`"test"`, `"production"`), LayerCheck, "same"}, {"a stale time", 200, json, swap("T11:58", "T11:54"), LayerCheck, "fresh"}, {"a future time", 200, json, swap("T11:58", "T12:01"), LayerCheck, "fresh"}, {"no time at all", 200, json, swap(`,"at":"2026-01-05T11:58:00.120+02:00"`, ``), LayerCheck, "fresh"},
		{"an unlisted code", 409, json, `{"error":"lockeD"}`, LayerOutcome, "failure-code"}, {"no code", 409, json, `{"err":"locked"}`, LayerOutcome, "failure-code"}, {"a code of a wrong type", 409, json, `{"error":{"locked":1}}`, LayerOutcome, "failure-code"}, {"no code and other", 422, json, `{}`, LayerOutcome, "failure-code"}, {"a fraction for a code", 409, json, `{"error":1003.5}`, LayerOutcome, "failure-code"},
	}
	for _, c := range cases {
		p, no := r.Prove(Raw{Status: c.status, Header: c.header, Body: []byte(c.body)}, testScope, testNow)
		if no == nil || p != nil {
			t.Errorf("%s: accepted: %+v", c.name, p)
			continue
		}
		if no.Layer != c.layer || no.Rule != c.rule || no.Status != c.status || no.EnginesDiffer {
			t.Errorf("%s: %+v, want %s %s", c.name, *no, c.layer, c.rule)
		}
		for _, planted := range []string{"dep_8f", "dep_8F", "hi", "yesterday", "ignore rules", "elsewhere", "lockeD", "BROKEN"} {
			if strings.Contains(c.body+fmt.Sprint(c.header), planted) && len(planted) > 2 && strings.Contains(no.Error(), planted) {
				t.Errorf("%s: the rejection shows the answer: %v", c.name, no)
			}
		}
	}
}

func TestProveFailures(t *testing.T) {
	change := mustReader(t, deploySpec(t))
	spec := deploySpec(t)
	spec.Change = false
	read := mustReader(t, spec)
	cases := []struct {
		r       *Reader
		status  int
		body    string
		code    string
		builtin bool
	}{
		{change, 409, `{"error":"locked"}`, "ENVIRONMENT_LOCKED", false}, {change, 409, `{"error":1003}`, "NUMBERED", false}, {change, 409, `{"error":"1003"}`, "NUMBERED", false}, {change, 422, `{"error":"bad"}`, "VERSION_UNKNOWN", false}, {change, 422, `{"error":"new"}`, "REMOTE_REFUSED_IT", false},
		{change, 401, `<html>`, "REMOTE_UNAUTHENTICATED", true}, {change, 403, ``, "REMOTE_FORBIDDEN", true}, {change, 404, `{"a":1,"a":1}`, "NOT_FOUND", true}, {change, 429, ``, "REMOTE_RATE_LIMITED", true},
		{change, 408, ``, "OUTCOME_UNKNOWN", true}, {change, 500, ``, "OUTCOME_UNKNOWN", true}, {change, 503, ``, "OUTCOME_UNKNOWN", true}, {change, 599, ``, "OUTCOME_UNKNOWN", true},
		{read, 408, ``, "UPSTREAM_UNAVAILABLE", true}, {read, 500, ``, "UPSTREAM_UNAVAILABLE", true}, {read, 504, ``, "UPSTREAM_UNAVAILABLE", true},
	}
	for _, c := range cases {
		p, no := c.r.Prove(answer(c.status, c.body), testScope, testNow)
		if no != nil {
			t.Errorf("%d %s: %v", c.status, c.body, no)
			continue
		}
		if code, builtin := p.Failure(); code != c.code || builtin != c.builtin || p.OK() || p.Data() != nil || p.Display() != nil || p.NotDone() || p.Row() == "" {
			t.Errorf("%d %s: %s %v", c.status, c.body, code, builtin)
		}
	}
}

func TestARowReplacesTheBuiltInOne(t *testing.T) {
	r := mustReader(t, ReaderSpec{Change: true, Rows: []RowSpec{
		{Status: []int{404}, When: equalsSpec("/code", "no_app"), Failure: &FailureSpec{Code: "APP_UNKNOWN"}},
		{Status: []int{503}, When: equalsSpec("/code", "queue_full"), Failure: &FailureSpec{Code: "UPSTREAM_UNAVAILABLE"}, NotDone: true},
		{Status: []int{200}, Media: MediaNone, HasSuccess: true},
	}})
	p, no := r.Prove(answer(404, `{"code":"no_app"}`), nil, testNow)
	if code, builtin := p.Failure(); no != nil || code != "APP_UNKNOWN" || builtin || p.NotDone() {
		t.Errorf("%v %s", no, code)
	}
	if _, no := r.Prove(answer(404, `{"code":"other"}`), nil, testNow); no == nil || no.Layer != LayerOutcome || no.Rule != "no-row" {
		t.Errorf("%+v", no)
	}
	p, no = r.Prove(answer(503, `{"code":"queue_full"}`), nil, testNow)
	if code, _ := p.Failure(); no != nil || code != "UPSTREAM_UNAVAILABLE" || !p.NotDone() {
		t.Errorf("%v %s", no, code)
	}
	p, no = r.Prove(Raw{Status: 200}, nil, testNow)
	if no != nil || !p.OK() || len(p.Data()) != 0 || p.Data() == nil {
		t.Errorf("%v %+v", no, p)
	}
}

func TestExactlyOneRow(t *testing.T) {
	r := mustReader(t, ReaderSpec{Rows: []RowSpec{
		{Name: "a", Status: []int{200}, When: equalsSpec("/ok", true), HasSuccess: true},
		{Name: "b", Status: []int{200}, When: equalsSpec("/ok", false), Failure: &FailureSpec{Code: "REFUSED"}},
		{Name: "c", Status: []int{200}, When: &PredicateSpec{Op: "exists", Ptr: "/error"}, Failure: &FailureSpec{Code: "REFUSED_TOO"}},
		{Name: "d", Status: []int{200}, Media: MediaText, HasSuccess: true},
		{Name: "e", Status: []int{200}, Media: MediaNone, HasSuccess: true},
	}})
	for body, want := range map[string]string{
		`{"ok":true}`: "a", `{"ok":false}`: "b", `{"error":1}`: "c", `{"ok":"true","error":1}`: "c", ``: "e",
		`{"ok":true,"error":1}`: "several-rows", `{"ok":false,"error":1}`: "several-rows", `{}`: "no-row", `{"ok":"true"}`: "no-row", `[]`: "no-row", `{"ok":null}`: "no-row",
	} {
		p, no := r.Prove(answer(200, body), nil, testNow)
		got := ""
		if no != nil {
			got = no.Rule
		} else {
			got = p.Row()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	text := Raw{Status: 200, Header: http.Header{"Content-Type": {"text/plain; charset=UTF-8"}}, Body: []byte("done\n")}
	if p, no := r.Prove(text, nil, testNow); no != nil || p.Row() != "d" {
		t.Errorf("%v", no)
	}
	text.Body = []byte("\xff")
	if _, no := r.Prove(text, nil, testNow); no == nil || no.Layer != LayerParse || no.Rule != ruleUTF8 {
		t.Errorf("%v", no)
	}
}

func TestCaptures(t *testing.T) {
	r := mustReader(t, ReaderSpec{Rows: []RowSpec{
		{Status: []int{200}, HasCapture: true, Capture: map[string]PickSpec{"sha": at("/sha"), "etag": {Kind: PickHeader, Header: "ETag", Matches: `^"[a-z0-9]{1,8}"$`}}},
		{Status: []int{204}, Media: MediaNone, HasCapture: true},
	}})
	raw := answer(200, `{"sha":"abc"}`)
	raw.Header.Set("ETag", `"v1"`)
	p, no := r.Prove(raw, nil, testNow)
	got, ok := p.Captured()
	if no != nil || p.OK() || !ok || !reflect.DeepEqual(got, map[string]any{"sha": "abc", "etag": `"v1"`}) {
		t.Errorf("%v %v", no, got)
	}
	if code, _ := p.Failure(); code != "" {
		t.Error("a capture has a code")
	}
	raw.Header.Set("ETag", `"v1 and prose"`)
	if _, no := r.Prove(raw, nil, testNow); no == nil || no.Layer != LayerPick || no.Rule != "matches" {
		t.Errorf("%v", no)
	}
	p, no = r.Prove(Raw{Status: 204}, nil, testNow)
	if got, ok := p.Captured(); no != nil || !ok || len(got) != 0 {
		t.Errorf("%v %v", no, got)
	}
}

func TestNothingBuiltFromNothing(t *testing.T) {
	for _, r := range []*Reader{nil, {}, (*Reader)(nil).WithHost("x")} {
		if p, no := r.Prove(answer(200, `{}`), nil, testNow); p != nil || no == nil || no.Rule != "stage-skipped" {
			t.Errorf("%v %v", p, no)
		}
	}
	for _, p := range []*Proved{nil, {}, {success: true, data: map[string]any{"a": "b"}, carries: true, captured: map[string]any{}}} {
		code, _ := p.Failure()
		if _, ok := p.Captured(); p.OK() || p.Data() != nil || p.Display() != nil || ok || p.NotDone() || p.Row() != "" || code != "INVALID_RESPONSE" {
			t.Errorf("%+v is something", p)
		}
	}
	refusals := map[string]*Rejection{}
	_, refusals[LayerParse] = received{}.parse()
	_, refusals[LayerOutcome] = document{}.choose(nil)
	_, refusals[LayerSchema] = chosen{}.expect()
	_, refusals[LayerPick] = fitted{}.pick()
	_, refusals[LayerResult] = picked{}.shape()
	_, refusals[LayerCheck] = shaped{}.prove(testNow)
	for layer, no := range refusals {
		if no == nil || no.Layer != layer || no.Rule != "stage-skipped" {
			t.Errorf("%s: %+v", layer, no)
		}
	}
}

func TestCompileReportsEveryMistake(t *testing.T) {
	_, err := Compile("request", ReaderSpec{
		Change: true, Result: mustParse(t, `{"type":"objekt"}`), Display: map[string]DisplayBound{"log": {}},
		Rows: []RowSpec{
			{Name: "rows[0]"},
			{Name: "rows[1]", Status: []int{99, 200, 200}, HasSuccess: true, Failure: &FailureSpec{}},
			{Name: "rows[2]", Status: []int{500}, HasSuccess: true},
			{Name: "rows[3]", Status: []int{503}, Failure: &FailureSpec{Code: "UPSTREAM_UNAVAILABLE"}},
			{Name: "rows[4]", Status: []int{408}, Failure: &FailureSpec{Code: "MY_CODE"}},
			{Name: "rows[5]", Status: []int{400}, Failure: &FailureSpec{Code: "VAULT_LOCKED"}},
			{Name: "rows[6]", Status: []int{400}, Failure: &FailureSpec{Code: "lower"}},
			{Name: "rows[7]", Status: []int{400}, Media: MediaNone, When: equalsSpec("", "x"), HasSuccess: true},
			{Name: "rows[8]", Status: []int{201}, HasSuccess: true, Success: map[string]PickSpec{"a": {}, "b": {Kind: PickFrom, From: "input.x"}, "c": {Kind: PickConst, Const: 7}, "d": with("/x", func(p *PickSpec) { p.Time = "epoch" })}},
			{Name: "rows[9]", Status: []int{201}, HasSuccess: true, Display: map[string]PickSpec{"other": at("/x")}},
			{Name: "rows[10]", Status: []int{201}, HasSuccess: true, When: &PredicateSpec{Op: "matches"}, Expect: mustParse(t, `{"typ":"object"}`)},
			{Name: "rows[11]", Status: []int{201}, HasCapture: true, NotDone: true},
			{Name: "rows[12]", Status: []int{400}, Failure: &FailureSpec{Code: "A_CODE"}, HasCapture: true},
			{Name: "rows[13]", Status: []int{400}, Failure: &FailureSpec{Code: "UPSTREAM_UNAVAILABLE"}},
			{Name: "rows[14]", Status: []int{206}, HasCapture: true, Capture: map[string]PickSpec{"etag": {Kind: PickHeader, Header: "ETag"}}},
		},
		Checks: []CheckSpec{{Kind: "same", Left: "input.a", Right: "target.b"}, {Kind: "signed", At: "result.x"}, {Kind: "fresh", At: "result.x"}},
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"result: #/type", "display.log: max and lines", "rows[0]: status is missing", "rows[0]: status is missing\nwrite one of", "rows[1]: status 99 is no final", "status 200 stands twice", "success and failure exclude",
		"rows[2]: status 500 does not tell", "rows[3]: failure: UPSTREAM_UNAVAILABLE says", "rows[4]: failure: after 408 or 5xx", "rows[5]: failure: no answer of a remote system can mean VAULT_LOCKED", "rows[6]: failure: a code matches",
		"rows[7]: media: none has no body", "rows[8]: success: a: a pick begins", "b: from: the caller's own words", "c: const is no JSON", "d: time is one of", "rows[9]: display.other has no bound", "rows[10]: when: there is no predicate", "expect: #/typ", "rows[11]: not_done stands", "rows[12]: a failure captures",
		"rows[13]: failure: UPSTREAM_UNAVAILABLE says", "rows[14]: capture.etag: a value captured from a header", "checks[0]: a check looks at", "checks[1]: \"signed\"", "checks[2]: \"fresh\"",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not reported in\n%v", want, err)
		}
	}
}

func TestReaderIsSafeForConcurrentUse(t *testing.T) {
	r := mustReader(t, deploySpec(t))
	done := make(chan bool)
	for range 4 {
		go func() {
			ok := true
			for range 25 {
				p, no := r.Prove(answer(200, goodBody), testScope, testNow)
				ok = ok && no == nil && p.OK()
			}
			done <- ok
		}()
	}
	for range 4 {
		if !<-done {
			t.Error("a good answer was rejected")
		}
	}
}

func TestRejectionText(t *testing.T) {
	no := &Rejection{Layer: LayerSchema, Rule: "type", SchemaPath: "/properties/a/type", InstancePath: "/a", Message: "is null, must be string", Row: "request.outcomes[0]", Status: 200}
	if got := no.Error(); got != "request.outcomes[0]: schema (type) at /a, schema /properties/a/type: is null, must be string (status 200)" {
		t.Error(got)
	}
	layers := []string{LayerTransport, LayerParse, LayerOutcome, LayerSchema, LayerPick, LayerCheck, LayerResult, LayerEcho}
	if !slices.Equal(layers, []string{"transport", "parse", "outcome", "schema", "pick", "check", "result", "echo"}) {
		t.Error(layers)
	}
}
