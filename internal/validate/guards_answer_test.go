package validate

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// More guards, as in guards_test.go: those of picks, predicates, checks, rows and
// keys.

func TestPicksDoNotCompileAtTheirEdges(t *testing.T) {
	one := PickSpec{Kind: PickPointer, At: "/a"}
	each := func(in string, most int, p PickSpec) PickSpec {
		return PickSpec{Kind: PickEach, Each: &EachSpec{In: in, Max: most, Pick: map[string]PickSpec{"m": p}}}
	}
	deep := func(n int) PickSpec {
		p := one
		for range n {
			p = each("/a", 1, p)
		}
		return p
	}
	found := equalsSpec("/a", "x")
	for name, c := range map[string]struct {
		pick PickSpec
		ok   bool
	}{
		"as many as may be": {each("/a", eachMax, one), true}, "too many": {each("/a", eachMax+1, one), false}, "none": {each("/a", 0, one), false}, "no each": {PickSpec{Kind: PickEach}, false},
		"no pointer": {each("a", 1, one), false}, "a wrong pick inside": {each("/a", 1, PickSpec{Kind: PickPointer, At: "x"}), false}, "as deep as may be": {deep(pickDepth), true}, "too deep": {deep(pickDepth + 1), false},
		"find": {PickSpec{Kind: PickFind, At: "/a", Find: &FindSpec{In: "/l", Where: *found}}, true}, "find, no pointer": {PickSpec{Kind: PickFind, At: "/a", Find: &FindSpec{In: "l", Where: *found}}, false},
		"find, no predicate": {PickSpec{Kind: PickFind, At: "/a", Find: &FindSpec{In: "/l"}}, false}, "a map of what is no JSON": {PickSpec{Kind: PickPointer, At: "/a", HasMap: true, Map: map[string]any{"a": 7}}, false},
	} {
		if _, err := compilePicks(map[string]PickSpec{"p": c.pick}, true, 0); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	for n, ok := range map[int]bool{pickCount: true, pickCount + 1: false} {
		specs := map[string]PickSpec{}
		for i := range n {
			specs[fmt.Sprint("p", i)] = one
		}
		if _, err := compilePicks(specs, true, 0); (err == nil) != ok {
			t.Errorf("%d picks: %v", n, err)
		}
	}
}

func TestPredicatesDoNotCompileAtTheirEdges(t *testing.T) {
	is := *equalsSpec("/a", "x")
	number := Operand{Kind: OperandConst, Const: json.Number("1")}
	subs := func(n int) PredicateSpec {
		p := PredicateSpec{Op: "all_of"}
		for range n {
			p.Subs = append(p.Subs, is)
		}
		return p
	}
	if _, err := compilePredicate(subs(predicateList), 0); err != nil {
		t.Error(err)
	}
	for name, p := range map[string]PredicateSpec{
		"too many": subs(predicateList + 1), "two for not": {Op: "not", Subs: []PredicateSpec{is, is}}, "each, no pointer": {Op: "each", Ptr: "l", Subs: []PredicateSpec{is}},
		"an empty path": {Op: "equals", Ptr: "/a", Arg: Operand{Kind: OperandFrom}}, "in what is no JSON": {Op: "in", Ptr: "/a", Set: []any{7}}, "count, no pointer": {Op: "count", Ptr: "l", Cmp: "<", N: "1"},
		"a right side of nothing": {Op: "compare", Left: number, Cmp: "<"}, "a number beyond the limits": {Op: "compare", Left: Operand{Kind: OperandConst, Const: json.Number("1e99")}, Cmp: "<", Right: number},
		"no pointer": {Op: "compare", Left: Operand{Kind: OperandAt, At: "a"}, Cmp: "<", Right: number}, "text": {Op: "compare", Left: Operand{Kind: OperandConst, Const: "1"}, Cmp: "<", Right: number},
		"absent beyond the limits": {Op: "compare", Left: Operand{Kind: OperandAt, At: "/a", HasAbsent: true, Absent: "1e99"}, Cmp: "<", Right: number},
	} {
		if _, err := compilePredicate(p, 0); err == nil {
			t.Errorf("%s: compiles", name)
		}
	}
}

func TestPathsThatLeadNowhere(t *testing.T) {
	if _, ok := (view{value: map[string]any{"a": true}}).at(mustPointer(t, "/a")); ok {
		t.Error("an absent body has members")
	}
	for name, v := range map[string]view{"no scope": {}, "a Go value": {scope: func(string) (any, bool) { return 7, true }}, "nothing": {scope: func(string) (any, bool) { return nil, false }}} {
		if got, ok := v.from("input.x"); ok || got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	p, err := compilePredicate(PredicateSpec{Op: "equals", Ptr: "/a", Arg: Operand{Kind: OperandFrom, From: "input.x"}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if p(view{value: map[string]any{"a": nil}, present: true}) != no {
		t.Error("null equals a path that leads nowhere")
	}
	if _, ok := mustPointer(t, "/x").Get([]any{"first"}); ok {
		t.Error("a name is an index")
	}
	f := facts{data: map[string]any{"a": "2026-01-05T10:00:00Z", "n": json.Number("1")}, scope: testScope, now: testNow}
	for _, path := range []string{"result.a.b", "result.b", "result.n"} {
		if _, ok := f.moment(path); ok {
			t.Errorf("%s is a time", path)
		}
	}
}

func TestCheckSpecsAtTheirEdges(t *testing.T) {
	for _, s := range []CheckSpec{{Kind: "fresh", At: "result.a", Within: -1}, {Kind: "after_call", At: "result.a", Skew: -1}, {Kind: "fresh", At: "result.a", Within: 1, Skew: -1}} {
		if _, err := compileCheck(s); err == nil || !strings.Contains(err.Error(), "not negative") {
			t.Errorf("%+v: %v", s, err)
		}
	}
	for want, s := range map[string]CheckSpec{"fresh result.a": {Kind: "fresh", At: "result.a"}, "same result.a, input.b": {Kind: "same", Left: "result.a", Right: "input.b"}} {
		if got := (check{spec: s}).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestConversionsOfOtherTypes(t *testing.T) {
	src := source{host: "api.example.test"}
	for _, v := range []any{nil, true, []any{}, map[string]any{}, json.Number("7")} {
		if out, ok := toInteger(v, src); ok {
			t.Errorf("%v is the integer %v", v, out)
		}
		if out, ok := lastSegment(v, src); ok {
			t.Errorf("%v has the segment %v", v, out)
		}
		if _, isNumber := v.(json.Number); !isNumber {
			if out, ok := toText(v, src); ok {
				t.Errorf("%v is the text %v", v, out)
			}
		}
	}
	for _, u := range []string{"https:api.example.test/x", "http://api.example.test/\x7f", "https://api.example.test/.", "https://api.example.test/a/.", "https://api.example.test/..", "/%zz"} {
		if out, ok := lastSegment(u, src); ok {
			t.Errorf("%q has the segment %v", u, out)
		}
	}
}

func mustPointer(t testing.TB, s string) Pointer {
	t.Helper()
	p, err := ParsePointer(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestKeywordsThatNoContractMayUse(t *testing.T) {
	for _, k := range []string{
		"$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary", "definitions", "dependencies", "contentEncoding",
		"contentMediaType", "contentSchema", "default", "nullable", "readOnly", "writeOnly", "additionalItems", "divisibleBy", "extends", "id", "discriminator",
	} {
		for _, doc := range []any{map[string]any{k: "x"}, map[string]any{"items": map[string]any{k: map[string]any{}}}} {
			if found := guardSchema(doc); len(found) == 0 || found[0].Rule != ruleKeyword {
				t.Errorf("%s: %v", k, found)
			}
		}
	}
}

func TestOneBoundIsNoRange(t *testing.T) {
	for _, in := range []string{`{"type":"integer","minimum":1}`, `{"type":"integer","maximum":1}`, `{"type":"number","exclusiveMinimum":1}`, `{"type":"number","exclusiveMaximum":1}`} {
		for _, use := range []SchemaUse{UseInput, UseResult, UseEnvelope} {
			if found := LintSchema(mustParse(t, in), use); len(found) == 0 || found[0].Rule != ruleFreeNumber {
				t.Errorf("%s: %v", in, found)
			}
		}
	}
}

func TestAClosedBranchIsNotOpen(t *testing.T) {
	in := `{"type":"object","unevaluatedProperties":false,"properties":{"a":{"type":"null"}},"dependentSchemas":{"a":{"properties":{"a":{"type":"null"}},"additionalProperties":false}}}`
	if found := LintSchema(mustParse(t, in), UseResult); len(found) > 0 {
		t.Error(found)
	}
}

func TestRowsDoNotCompileAtTheirEdges(t *testing.T) {
	one := map[string]PickSpec{"a": {Kind: PickPointer, At: "/a"}}
	for name, row := range map[string]RowSpec{
		"media is json": {HasCapture: true, Media: MediaNone + 7}, "picks without their keyword": {HasCapture: true, Success: one},
		"picks without": {HasSuccess: true, Capture: one}, "display stands beside success": {HasCapture: true, Display: one},
		"write a code": {Failure: &FailureSpec{}}, "write a code, or at": {Failure: &FailureSpec{Code: "A_CODE", At: "/a", Map: map[string]string{"x": "B_CODE"}}},
		"has no at": {Failure: &FailureSpec{Code: "A_CODE", At: "/a"}}, "and no other": {Failure: &FailureSpec{Code: "A_CODE", Other: "B_CODE"}},
	} {
		row.Name, row.Status = "row", []int{400}
		_, err := Compile("request", ReaderSpec{Rows: []RowSpec{row}, Display: map[string]DisplayBound{"a": {Max: 1, Lines: 1}}})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// compileBoth has no guard before it, so that each engine's own refusal counts.
func TestEachEngineRefusesASchemaAlone(t *testing.T) {
	for _, in := range []string{`{"minLength":-1}`, `{"type":5}`, `{"required":"a"}`, `{"$ref":"#/$defs/nope"}`, `{"pattern":"("}`} {
		if s, err := compileBoth("test", mustParse(t, in)); err == nil || s != nil {
			t.Errorf("%s compiles", in)
		}
	}
}

func TestOnlyWhatTheParserMakesIsAsked(t *testing.T) {
	deep := func(n int) any {
		var v any = "x"
		for i := range n {
			if v = []any{v}; i%2 == 0 {
				v = map[string]any{"a": v.([]any)[0]}
			}
		}
		return v
	}
	for _, v := range []any{7, []any{7}, map[string]any{"a": 7}, []any{[]any{1.5}}, []string{"a"}, map[string]string{"a": "b"}, json.Number("1e99"), json.Number("x"), json.Number(""), deep(parsedDepth + 1)} {
		if isParsed(v, 0) {
			t.Errorf("%.60v is taken", v)
		}
	}
	if !isParsed(deep(parsedDepth), 0) {
		t.Error("the deepest value is refused")
	}
}

func TestViolationsAreCapped(t *testing.T) {
	s := mustSchema(t, `{"type":"array","items":{"type":"null"}}`)
	wrong := make([]any, 1000)
	for i := range wrong {
		wrong[i] = "x"
	}
	if got := len(s.Violations(wrong, 1000)); got != violationCap {
		t.Errorf("%d violations, want %d", got, violationCap)
	}
}

func TestLooseTimesAtTheirEdges(t *testing.T) {
	for _, in := range []string{"2026-01-05x10:00:00Z", "2026-01-05 10:00:00.Z", "2026-01-05 10:00:00.1234567890Z", "2026-01-05 10:00:00+24:00", "2026-01-05 10:00:00+0160", "2026-01-05 10:00:00+1", "2026-01-05 10:00:00", "0000-01-01 00:00:00+0100"} {
		if at, ok := parseLoose(in); ok {
			t.Errorf("%s is %v", in, at)
		}
	}
}

func TestNothingIsCapturedWhereNothingWas(t *testing.T) {
	r := mustReader(t, ReaderSpec{Rows: []RowSpec{{Name: "ok", Status: []int{200}, HasSuccess: true}}})
	p, no := r.Prove(answer(200, `{}`), testScope, testNow)
	if no != nil {
		t.Fatal(no)
	}
	if got, ok := p.Captured(); ok || got != nil {
		t.Errorf("%v %v", got, ok)
	}
}

func TestABoundStandsBesideItsType(t *testing.T) {
	for k, in := range map[string]string{
		"minimum": "1", "maximum": "1", "exclusiveMinimum": "1", "exclusiveMaximum": "1", "multipleOf": "1", "minLength": "1", "maxLength": "1", "pattern": `"^a$"`, "format": `"date"`,
		"minItems": "1", "maxItems": "1", "uniqueItems": "true", "minProperties": "1", "maxProperties": "1",
	} {
		for _, beside := range []string{``, `,"type":"boolean"`, `,"type":["null","boolean"]`} {
			if found := guardSchema(mustParse(t, `{"`+k+`":`+in+beside+`}`)); len(found) != 1 || found[0].Rule != ruleBeside {
				t.Errorf("%s%s: %v", k, beside, found)
			}
		}
	}
}

func TestWhatIsShownIsText(t *testing.T) {
	show := map[string]PickSpec{"note": {Kind: PickPointer, At: "/n"}}
	r := mustReader(t, ReaderSpec{
		Display: map[string]DisplayBound{"note": {Max: 10, Lines: 1}},
		Rows:    []RowSpec{{Name: "ok", Status: []int{200}, HasSuccess: true, Display: show}},
	})
	for _, body := range []string{`{"n":1}`, `{"n":true}`, `{"n":["a"]}`, `{"n":{"a":"b"}}`} {
		if p, no := r.Prove(answer(200, body), testScope, testNow); no == nil || no.Layer != LayerPick || p != nil {
			t.Errorf("%s: %v", body, no)
		}
	}
}

// What one answer captures is bounded together and not value by value, in its
// canonical form; what a result holds is not bound by it.
func TestCapturesAreBounded(t *testing.T) {
	pick := func(at string) PickSpec { return PickSpec{Kind: PickPointer, At: at} }
	for _, step := range []StepKind{StepLookup, StepRequest} {
		r := mustReader(t, ReaderSpec{Step: step, Change: step == StepRequest, Rows: []RowSpec{{Status: []int{200}, HasCapture: true, Capture: map[string]PickSpec{"a": pick("/a"), "b": pick("/b")}}}})
		bare := len(`{"a":"","b":""}`)
		for name, c := range map[string]struct {
			body string
			ok   bool
		}{
			"as much as there may be": {twoTexts(capturedBytes/2, capturedBytes/2-bare), true},
			"a byte more":             {twoTexts(capturedBytes/2, capturedBytes/2-bare+1), false},
			"all in one":              {twoTexts(1, capturedBytes), false},
			"only spaces more":        {strings.Repeat(" ", capturedBytes) + twoTexts(1, 1), true},
			"escapes count":           {`{"a":"` + strings.Repeat(`\u0001`, capturedBytes/6) + `","b":"b"}`, false},
		} {
			p, no := r.Prove(answer(200, c.body), testScope, testNow)
			if _, captured := p.Captured(); captured != c.ok || c.ok != (no == nil) || no != nil && (no.Layer != LayerPick || no.Rule != "capture-bytes") {
				t.Errorf("step %d, %s: %v", step, name, no)
			}
		}
	}
}

func twoTexts(a, b int) string {
	return `{"a":"` + strings.Repeat("a", a) + `","b":"` + strings.Repeat("b", b) + `"}`
}

// A code that is no text and no whole number is not the code of other.
func TestAFailureCodeIsACode(t *testing.T) {
	r := mustReader(t, ReaderSpec{Rows: []RowSpec{{Name: "no", Status: []int{400}, Failure: &FailureSpec{At: "/code", Map: map[string]string{"x": "A_CODE"}, Other: "B_CODE"}}}})
	for _, body := range []string{`{"code":true}`, `{"code":null}`, `{"code":["x"]}`, `{"code":1.5}`, `{}`} {
		if p, no := r.Prove(answer(400, body), testScope, testNow); no == nil || no.Rule != "failure-code" || p != nil {
			t.Errorf("%s: %v", body, no)
		}
	}
}

func TestTimesAtTheirEdges(t *testing.T) {
	for _, in := range []string{"Sun, 06 Nov 1994 08:49:37.5 GMT", "Sun Nov  6 08:49:37.5 1994"} {
		if at, ok := parseHTTPDate(in); ok {
			t.Errorf("%s is %v", in, at)
		}
	}
	// Numbers whose seconds would run over an int64, to zero and below it.
	for _, in := range []json.Number{"1e64", "1e12", "18446744073709551616", "9223372036854775808", "253402300800"} {
		if at, ok := unixTime(0)(in); ok {
			t.Errorf("%s is %s", in, at)
		}
	}
}

// What is absent on the right side of a check must not count as the least.
func TestAnAbsentSideFailsACheck(t *testing.T) {
	nothing := func(string) (any, bool) { return nil, false }
	data := map[string]any{"n": json.Number("5"), "at": "2026-01-05T10:00:00Z"}
	for _, s := range []CheckSpec{
		{Kind: "increased", Left: "result.n", Right: "head.n"}, {Kind: "increased", Left: "result.n", Right: "result.at"}, {Kind: "increased", Left: "result.x", Right: "result.n"},
		{Kind: "after_call", At: "result.at"}, {Kind: "same", Left: "result.x", Right: "head.x"}, {Kind: "fresh", At: "result.x", Within: 1 << 62},
	} {
		c, err := compileCheck(s)
		if err != nil {
			t.Fatal(err)
		}
		if c.holds(facts{data: data, scope: nothing, now: testNow}) == nil {
			t.Errorf("%s holds", c)
		}
	}
}

func TestRSAKeysAtTheirEdges(t *testing.T) {
	change := func(f func(k map[string]any)) []byte {
		k := jwkOf(t, "RS256", "k", testKeys()["RS256"].Public())
		f(k)
		return jwks(k)
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for name, in := range map[string][]byte{
		"an exponent of one": change(func(k map[string]any) { k["e"] = "AQ" }),
		"an even exponent":   change(func(k map[string]any) { k["e"] = "Ag" }),
		"no text":            change(func(k map[string]any) { k["n"] = json.Number("5") }),
		"a second spelling of the modulus": change(func(k map[string]any) {
			n := k["n"].(string)
			last := strings.IndexByte(alphabet, n[len(n)-1])
			k["n"] = n[:len(n)-1] + alphabet[last^1:last^1+1]
		}),
		"a line break": change(func(k map[string]any) { k["n"] = k["n"].(string)[:10] + "\n" + k["n"].(string)[10:] }),
	} {
		if _, err := ParseKeySet(in); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestCoordinatesHaveTheLengthOfTheirCurve(t *testing.T) {
	for _, alg := range []string{"ES256", "ES384", "ES512", "EdDSA"} {
		for name, f := range map[string]func([]byte) []byte{
			"a zero before": func(b []byte) []byte { return append([]byte{0}, b...) }, "a zero behind": func(b []byte) []byte { return append(b[:len(b):len(b)], 0) }, "one less": func(b []byte) []byte { return b[1:] },
		} {
			k := jwkOf(t, alg, "k", testKeys()[alg].Public())
			raw, ok := base64URL(k["x"].(string))
			if !ok {
				t.Fatal("x is no base64url")
			}
			k["x"] = base64.RawURLEncoding.EncodeToString(f(raw))
			if _, err := ParseKeySet(jwks(k)); err == nil {
				t.Errorf("%s: x with %s is taken", alg, name)
			}
		}
	}
}

func TestMissedIsSaidOfAFindOnly(t *testing.T) {
	find := PickSpec{Kind: PickFind, At: "/id", Find: &FindSpec{In: "/l", Where: *equalsSpec("/id", "x")}}
	r := mustReader(t, ReaderSpec{
		Result: mustParse(t, `{"type":"object","additionalProperties":false,"properties":{"id":{"type":"string","maxLength":9}}}`),
		Rows: []RowSpec{
			{Name: "ok", Status: []int{200}, HasSuccess: true, Success: map[string]PickSpec{"id": find}},
			{Name: "gone", Status: []int{404}, Failure: &FailureSpec{Code: "NOT_FOUND"}},
		},
	})
	for body, want := range map[string]bool{`{"l":[]}`: true, `{"l":[{"id":"x"}]}`: false} {
		p, no := r.Prove(answer(200, body), testScope, testNow)
		if no != nil || p.Missed() != want {
			t.Errorf("%s: %v, %+v", body, no, p)
		}
	}
	if p, no := r.Prove(answer(404, `{}`), testScope, testNow); no != nil || p.Missed() {
		t.Errorf("%v, %+v", no, p)
	}
	if (&Proved{missed: true}).Missed() {
		t.Error("an answer that did not pass says something")
	}
}

// Null and absent are two things: an absent claim is not a null one, and a path
// that leads nowhere is no null either.
func TestAnAbsentClaimIsNotNull(t *testing.T) {
	s := SignedSpec{Issuer: "i", Audience: "a", Claims: map[string]string{"sub": "input.x"}}
	head := fmt.Sprintf(`{"iss":"i","aud":"a","exp":%d`, testNow.Unix()+60)
	for _, c := range []struct {
		payload string
		known   bool
		want    string
	}{{head + `,"sub":null}`, true, ""}, {head + `}`, true, ruleSignedClaim}, {head + `,"sub":null}`, false, ruleSignedClaim}, {head + `}`, false, ruleSignedClaim}} {
		f := facts{scope: func(string) (any, bool) { return nil, c.known }, now: testNow}
		got := ""
		if fault := s.claims([]byte(c.payload), f); fault != nil {
			got = fault.rule
		}
		if got != c.want {
			t.Errorf("%s, known %v: %q, want %q", c.payload, c.known, got, c.want)
		}
	}
}
