package validate

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

const numberOne = json.Number("1")

func TestPredicates(t *testing.T) {
	doc := `{"s":"x","n":4,"big":9007199254740993,"f":1.50,"b":true,"z":null,"l":[1,2,3],"e":[],"o":{"k":"v"},"mix":[1,"x"],"objs":[{"k":1,"on":true},{"k":2,"on":false}]}`
	body := mustParse(t, doc)
	c := func(v any) Operand { return Operand{Kind: OperandConst, Const: v} }
	from := func(p string) Operand { return Operand{Kind: OperandFrom, From: p} }
	ptr := func(p string) Operand { return Operand{Kind: OperandAt, At: p} }
	eq := func(p string, v any) PredicateSpec { return *equalsSpec(p, v) }
	n := func(s string) json.Number { return json.Number(s) }
	sub := func(op, p string, subs ...PredicateSpec) PredicateSpec {
		return PredicateSpec{Op: op, Ptr: p, Subs: subs}
	}
	cmp := func(a Operand, op string, b Operand) PredicateSpec {
		return PredicateSpec{Op: "compare", Left: a, Cmp: op, Right: b}
	}
	count := func(p, op, k string) PredicateSpec { return PredicateSpec{Op: "count", Ptr: p, Cmp: op, N: n(k)} }
	cases := []struct {
		name string
		p    PredicateSpec
		want truth
	}{
		{"equal text", eq("/s", "x"), yes}, {"other text", eq("/s", "y"), no}, {"case matters", eq("/s", "X"), no}, {"absent", eq("/q", "x"), no}, {"text is no number", eq("/n", "4"), unknown}, {"number is no text", eq("/s", n("4")), unknown}, {"true is no text", eq("/b", "true"), unknown},
		{"decimal", eq("/f", n("1.5")), yes}, {"large", eq("/big", n("9007199254740992")), no}, {"large same", eq("/big", n("9007199254740993.0")), yes}, {"null", eq("/z", nil), yes}, {"no null", eq("/s", nil), no}, {"null for text", eq("/z", "x"), unknown}, {"whole body", eq("", "x"), unknown}, {"list", eq("/l", []any{n("1"), n("2"), n("3.0")}), yes}, {"through a scalar", eq("/s/k", "x"), no},
		{"from", PredicateSpec{Op: "equals", Ptr: "/s", Arg: from("input.service")}, no}, {"from absent", PredicateSpec{Op: "equals", Ptr: "/s", Arg: from("input.nope")}, no},
		{"in", PredicateSpec{Op: "in", Ptr: "/s", Set: []any{"a", "x"}}, yes}, {"not in", PredicateSpec{Op: "in", Ptr: "/s", Set: []any{"a"}}, no}, {"in of another type", PredicateSpec{Op: "in", Ptr: "/n", Set: []any{"4"}}, unknown}, {"in absent", PredicateSpec{Op: "in", Ptr: "/q", Set: []any{"a"}}, no},
		{"exists", PredicateSpec{Op: "exists", Ptr: "/z"}, yes}, {"exists not", PredicateSpec{Op: "exists", Ptr: "/q"}, no}, {"is_null", PredicateSpec{Op: "is_null", Ptr: "/z"}, yes}, {"is_null not", PredicateSpec{Op: "is_null", Ptr: "/s"}, no}, {"is_null absent", PredicateSpec{Op: "is_null", Ptr: "/q"}, no},
		{"not", sub("not", "", eq("/s", "y")), yes}, {"not unknown", sub("not", "", eq("/n", "4")), unknown}, {"not absent", sub("not", "", eq("/q", "x")), yes},
		{"all", sub("all_of", "", eq("/s", "x"), eq("/b", true)), yes}, {"all with no", sub("all_of", "", eq("/n", "4"), eq("/s", "y")), no}, {"all with unknown", sub("all_of", "", eq("/n", "4"), eq("/s", "x")), unknown},
		{"any", sub("any_of", "", eq("/n", "4"), eq("/s", "x")), yes}, {"any with unknown", sub("any_of", "", eq("/n", "4"), eq("/s", "y")), unknown}, {"any no", sub("any_of", "", eq("/s", "y"), eq("/b", false)), no},
		{"each", sub("each", "/l", cmp(ptr(""), ">", c(n("0")))), yes}, {"each no", sub("each", "/l", cmp(ptr(""), ">", c(n("1")))), no}, {"each of none", sub("each", "/e", eq("", n("1"))), no}, {"each absent", sub("each", "/q", eq("", n("1"))), no}, {"each of text", sub("each", "/s", eq("", n("1"))), unknown}, {"each of object", sub("each", "/o", eq("", n("1"))), unknown}, {"each unknown", sub("each", "/mix", eq("", n("1"))), unknown}, {"each unknown and no", sub("each", "/mix", eq("", n("2"))), no},
		{"some", sub("some", "/objs", eq("/on", true)), yes}, {"some no", sub("some", "/objs", eq("/k", n("3"))), no}, {"some empty", sub("some", "/e", eq("", n("1"))), no}, {"some absent", sub("some", "/q", eq("", n("1"))), no}, {"some unknown", sub("some", "/mix", eq("", n("2"))), unknown},
		{"none", sub("none", "/objs", eq("/k", n("3"))), yes}, {"none no", sub("none", "/objs", eq("/k", n("1"))), no}, {"none empty", sub("none", "/e", eq("", n("1"))), yes}, {"none absent", sub("none", "/q", eq("", n("1"))), yes}, {"none of null", sub("none", "/z", eq("", n("1"))), unknown}, {"none unknown", sub("none", "/mix", eq("", n("2"))), unknown},
		{"count", count("/l", "==", "3"), yes}, {"count no", count("/l", "<", "3"), no}, {"count absent", count("/q", "==", "0"), unknown}, {"count of object", count("/o", "==", "1"), unknown},
		{"compare", cmp(ptr("/n"), ">=", c(n("4.0"))), yes}, {"compare no", cmp(ptr("/n"), "!=", c(n("4"))), no}, {"compare absent", cmp(ptr("/q"), "<", c(n("4"))), unknown}, {"compare text", cmp(ptr("/s"), "<", c(n("4"))), unknown}, {"compare null", cmp(Operand{Kind: OperandAt, At: "/z", HasAbsent: true, Absent: "0"}, "<", c(n("4"))), unknown},
		{"compare default", cmp(Operand{Kind: OperandAt, At: "/q", HasAbsent: true, Absent: "0"}, "<", c(n("4"))), yes}, {"compare from", cmp(ptr("/n"), ">", from("head.version")), yes}, {"compare from absent", cmp(ptr("/n"), ">", from("head.nope")), unknown}, {"compare large", cmp(ptr("/big"), ">", c(n("9007199254740992"))), yes},
	}
	for _, c := range cases {
		p, err := compilePredicate(c.p, 0)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := p(view{body, true, testScope}); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	deep := eq("/s", "x")
	for range predicateDepth + 1 {
		deep = sub("not", "", deep)
	}
	for _, bad := range []PredicateSpec{{}, {Op: "equals"}, {Op: "equals", Ptr: "x", Arg: c("x")}, {Op: "in"}, {Op: "not"}, sub("all_of", ""), sub("each", "/l"), {Op: "count", Cmp: "=", N: "1"}, {Op: "count", Cmp: "<", N: "1.5"}, {Op: "compare", Cmp: "<"}, cmp(c("x"), "<", c(n("1"))), cmp(c(n("1")), "=<", c(n("1"))), {Op: "equals", Ptr: "", Arg: c(7)}, deep} {
		if _, err := compilePredicate(bad, 0); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

// takeOne runs one pick and gives its canonical value, "left out", or the rule.
func takeOne(t *testing.T, s PickSpec, body string, h http.Header) string {
	t.Helper()
	p, err := compilePick(s, false, 0)
	if err != nil {
		t.Fatalf("%+v: %v", s, err)
	}
	v, present, pf := p.take(source{view{mustParse(t, body), true, testScope}, h, "ci.example.test"})
	switch {
	case pf != nil:
		return "!" + pf.rule
	case !present:
		return "left out"
	}
	return string(Canonical(v))
}

func TestPicks(t *testing.T) {
	set := func(f func(*PickSpec)) PickSpec { return with("/v", f) }
	trim := set(func(p *PickSpec) { p.Trim = true })
	cases := []struct {
		name       string
		p          PickSpec
		body, want string
	}{
		{"pointer", at("/v"), `{"v":"x"}`, `"x"`}, {"a number stays one", at("/v"), `{"v":4}`, `4`}, {"text is not turned", at("/v"), `{"v":"4"}`, `"4"`}, {"absent", at("/v"), `{}`, "!absent"}, {"null", at("/v"), `{"v":null}`, "!null"},
		{"optional absent", set(func(p *PickSpec) { p.Optional = true }), `{}`, "left out"}, {"optional null", set(func(p *PickSpec) { p.Optional = true }), `{"v":null}`, "left out"},
		{"null kept", set(func(p *PickSpec) { p.Null = "keep" }), `{"v":null}`, "null"}, {"null kept, absent", set(func(p *PickSpec) { p.Null = "keep" }), `{}`, "!absent"}, {"null omitted", set(func(p *PickSpec) { p.Null = "omit" }), `{"v":null}`, "left out"}, {"null refused though optional", set(func(p *PickSpec) { p.Null, p.Optional = "refuse", true }), `{"v":null}`, "!null"}, {"null kept before conversions", set(func(p *PickSpec) { p.Null, p.Lower = "keep", true }), `{"v":null}`, "null"},
		{"from", PickSpec{Kind: PickFrom, From: "target.owner"}, `{}`, `"acme"`}, {"from absent", PickSpec{Kind: PickFrom, From: "target.nope"}, `{}`, "!absent"}, {"const", PickSpec{Kind: PickConst, Const: true}, `{}`, "true"},
		{"base64", set(func(p *PickSpec) { p.Base64 = true }), `{"v":"aGVsbG8="}`, `"hello"`}, {"base64 in lines", set(func(p *PickSpec) { p.Base64 = true }), `{"v":"aGVs\nbG8=\n"}`, `"hello"`}, {"no base64", set(func(p *PickSpec) { p.Base64 = true }), `{"v":"aGVsbG8"}`, "!base64"}, {"base64 of bytes", set(func(p *PickSpec) { p.Base64 = true }), `{"v":"//79"}`, "!base64"}, {"base64 of a number", set(func(p *PickSpec) { p.Base64 = true }), `{"v":4}`, "!base64"}, {"base64 with loose bits", set(func(p *PickSpec) { p.Base64 = true }), `{"v":"aGVsbG9="}`, "!base64"},
		{"trim", trim, `{"v":" x\n"}`, `"x"`}, {"trim of an object", trim, `{"v":{}}`, "!trim"}, {"only listed spaces", trim, `{"v":"\u00a0x"}`, "\"\u00a0x\""},
		{"strip", set(func(p *PickSpec) { p.StripPrefix = "refs/heads/" }), `{"v":"refs/heads/main"}`, `"main"`}, {"nothing to strip", set(func(p *PickSpec) { p.StripPrefix = "refs/heads/" }), `{"v":"main"}`, "!strip-prefix"},
		{"lower", set(func(p *PickSpec) { p.Lower = true }), `{"v":"RUNNING-É"}`, `"running-É"`}, {"a look-alike stays one", set(func(p *PickSpec) { p.Lower = true }), `{"v":"\u212aI\u0130"}`, "\"\u212ai\u0130\""},
		{"map", set(func(p *PickSpec) { p.HasMap, p.Map = true, map[string]any{"a": "b"} }), `{"v":"a"}`, `"b"`}, {"map miss", set(func(p *PickSpec) { p.HasMap, p.Map = true, map[string]any{"a": "b"} }), `{"v":"A"}`, "!map"}, {"map of a number", set(func(p *PickSpec) { p.HasMap, p.Map = true, map[string]any{"1": "b"} }), `{"v":1}`, "!map"},
		{"other", set(func(p *PickSpec) { p.HasMap, p.Map, p.HasOther, p.Other = true, map[string]any{"a": "b"}, true, "odd" }), `{"v":"zzz"}`, `"odd"`}, {"other is not for other types", set(func(p *PickSpec) { p.HasMap, p.Map, p.HasOther, p.Other = true, map[string]any{"a": "b"}, true, "odd" }), `{"v":[]}`, "!map"}, {"lower before map", set(func(p *PickSpec) { p.Lower, p.HasMap, p.Map = true, true, map[string]any{"a": numberOne} }), `{"v":"A"}`, `1`},
		{"integer", set(func(p *PickSpec) { p.Integer = true }), `{"v":"9007199254740993"}`, `9007199254740993`}, {"negative", set(func(p *PickSpec) { p.Integer = true }), `{"v":"-5"}`, `-5`},
		{"text form", set(func(p *PickSpec) { p.Text = true }), `{"v":12345678901234567890}`, `"12345678901234567890"`}, {"text of an exponent", set(func(p *PickSpec) { p.Text = true }), `{"v":1.50e3}`, `"1500"`}, {"text of a fraction", set(func(p *PickSpec) { p.Text = true }), `{"v":-0.250}`, `"-0.25"`}, {"text of text", set(func(p *PickSpec) { p.Text = true }), `{"v":"4"}`, "!text"},
		{"prefix", set(func(p *PickSpec) { p.Text, p.Prefix = true, "run-" }), `{"v":7}`, `"run-7"`}, {"prefix of a number", set(func(p *PickSpec) { p.Prefix = "run-" }), `{"v":7}`, "!prefix"},
		{"matches", set(func(p *PickSpec) { p.Matches = "^[a-z]{1,3}$" }), `{"v":"abc"}`, `"abc"`}, {"matches not", set(func(p *PickSpec) { p.Matches = "^[a-z]{1,3}$" }), `{"v":"abcd"}`, "!matches"}, {"matches sees line ends", set(func(p *PickSpec) { p.Matches = "^[a-z]{1,3}$" }), `{"v":"abc\n"}`, "!matches"},
	}
	for _, bad := range []string{`"4.0"`, `"04"`, `"+4"`, `" 4"`, `"4 "`, `"1e3"`, `""`, `"-"`, `"-0"`, `"0x4"`, `"٤"`, `4`, `true`, `"` + strings.Repeat("9", 65) + `"`} {
		cases = append(cases, struct {
			name       string
			p          PickSpec
			body, want string
		}{"integer of " + bad, set(func(p *PickSpec) { p.Integer = true }), `{"v":` + bad + `}`, "!integer"})
	}
	for _, c := range cases {
		if got := takeOne(t, c.p, c.body, nil); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestLastSegment(t *testing.T) {
	s := with("/v", func(p *PickSpec) { p.LastSegment = true })
	for in, want := range map[string]string{
		"https://ci.example.test/queue/item/12/": `"12"`, "https://CI.example.test:443/a/b?x=1#f": `"b"`, "/queue/item/12/": `"12"`, "http://ci.example.test/a": `"a"`,
		"https://evil.test/queue/item/12/": "!last-segment", "https://ci.example.test.evil.test/12": "!last-segment", "https://ci.example.test:8443/12": "!last-segment", "//evil.test/12": "!last-segment", "https://user@ci.example.test/12": "!last-segment",
		"queue/item/12": "!last-segment", "ftp://ci.example.test/12": "!last-segment", "https://ci.example.test/": "!last-segment", "https://ci.example.test": "!last-segment", "https://ci.example.test/a/..": "!last-segment", "https://ci.example.test/a%2fb": "!last-segment", "https://ci.example.test/a;b": "!last-segment", "mailto:x": "!last-segment", "": "!last-segment", "https://ci.example.test/a\\\\..": "!last-segment", "https://с1.example.test/12": "!last-segment",
	} {
		if got := takeOne(t, s, `{"v":"`+in+`"}`, nil); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	p, _ := compilePick(s, false, 0)
	if _, _, pf := p.take(source{view: view{mustParse(t, `{"v":"/a/b"}`), true, nil}}); pf == nil {
		t.Error("a segment without a host to compare with")
	}
}

func TestTimeForms(t *testing.T) {
	cases := map[string]map[string]string{
		"rfc3339":       {`"2026-01-05T12:00:00.1200+02:00"`: "2026-01-05T10:00:00.1200Z", `"2026-01-05T10:00:00Z"`: "2026-01-05T10:00:00Z", `"2026-01-05 10:00:00Z"`: "", `"2026-01-05T10:00:00"`: "", `1767607200`: "", `"2026-02-29T10:00:00Z"`: ""},
		"rfc3339_loose": {`"2026-01-05 10:00:00 UTC"`: "2026-01-05T10:00:00Z", `"2026-01-05T12:00:00.000+0200"`: "2026-01-05T10:00:00.000Z", `"2026-01-05t10:00:00,5z"`: "2026-01-05T10:00:00.5Z", `"2026-01-05 10:00:00+00"`: "2026-01-05T10:00:00Z", `"2026-01-05 10:00:00"`: "", `"2026-01-05"`: "", `"2026-01-05T10:00:00 CET"`: "", `"2026-01-05T10:00:00+2500"`: "", `"05.01.2026 10:00:00Z"`: "", `"2026-01-05T10:00:00.1234567891Z"`: ""},
		"unix_seconds":  {`1767607200`: "2026-01-05T10:00:00Z", `1767607200.000247`: "2026-01-05T10:00:00.000247Z", `1.7676072e9`: "2026-01-05T10:00:00Z", `0`: "1970-01-01T00:00:00Z", `"1767607200"`: "", `-1`: "", `253402300799`: "9999-12-31T23:59:59Z", `253402300800`: "", `1e60`: "", `1e-30`: "", `null`: "!null"},
		"unix_millis":   {`1767607200120`: "2026-01-05T10:00:00.12Z", `1767607200000`: "2026-01-05T10:00:00Z", `"1767607200000"`: "", `5`: "1970-01-01T00:00:00.005Z"},
		"unix_nanos":    {`1767607200000000001`: "2026-01-05T10:00:00.000000001Z", `1767607200000000001.5`: ""},
		"http_date":     {`"Mon, 05 Jan 2026 10:00:00 GMT"`: "2026-01-05T10:00:00Z", `"Mon, 05 Jan 2026 10:00:00 CET"`: "", `"5 Jan 2026"`: ""},
	}
	for form, list := range cases {
		for in, want := range list {
			switch want {
			case "":
				want = "!time"
			case "!null":
			default:
				want = `"` + want + `"`
			}
			if got := takeOne(t, with("/v", func(p *PickSpec) { p.Time = form }), `{"v":`+in+`}`, nil); got != want {
				t.Errorf("%s %s: %s, want %s", form, in, got, want)
			}
		}
	}
	both := with("/v", func(p *PickSpec) { p.Integer, p.Time = true, "unix_seconds" })
	if got := takeOne(t, both, `{"v":"1767607200"}`, nil); got != `"2026-01-05T10:00:00Z"` {
		t.Error(got)
	}
}

func TestHeaderPicks(t *testing.T) {
	s := PickSpec{Kind: PickHeader, Header: "location", LastSegment: true}
	if got := takeOne(t, s, `{}`, http.Header{"Location": {"https://ci.example.test/item/12/"}}); got != `"12"` {
		t.Error(got)
	}
	for _, lines := range [][]string{{"/a", "/b"}, {"/a\x00"}, {"/é"}, {"/a\tb"}} {
		if got := takeOne(t, s, `{}`, http.Header{"Location": lines}); got != "!header" {
			t.Errorf("%q: %s", lines, got)
		}
	}
	if got := takeOne(t, s, `{}`, nil); got != "!absent" {
		t.Error(got)
	}
	for _, name := range []string{"", "a b", "a\n", "é"} {
		if _, err := compilePick(PickSpec{Kind: PickHeader, Header: name}, false, 0); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
}

func TestFind(t *testing.T) {
	find := func(f func(*PickSpec)) PickSpec {
		s := PickSpec{Kind: PickFind, At: "/id", Find: &FindSpec{In: "/items", Where: *equalsSpec("/name", "api")}}
		if f != nil {
			f(&s)
		}
		return s
	}
	for body, want := range map[string]string{
		`{"items":[{"name":"web","id":1},{"name":"api","id":2}]}`: `2`, `{"items":[{"name":"web"}]}`: "!find-none", `{"items":[]}`: "!find-none",
		`{"items":[{"name":"api","id":1},{"name":"api","id":2}]}`: "!find-several", `{"items":[{"name":4}]}`: "!find-unknown", `{"items":[{"name":4},{"name":"api","id":2}]}`: `2`,
		`{"items":{"name":"api"}}`: "!find", `{"items":null}`: "!find", `{}`: "!absent", `{"items":[{"name":"api"}]}`: "!absent",
	} {
		if got := takeOne(t, find(nil), body, nil); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	if got := takeOne(t, find(func(p *PickSpec) { p.Optional = true }), `{"items":[]}`, nil); got != "left out" {
		t.Error(got)
	}
	r := mustReader(t, ReaderSpec{Rows: []RowSpec{{Status: []int{200}, HasSuccess: true, Success: map[string]PickSpec{"id": find(nil)}}},
		Result: mustParse(t, `{"type":"object","additionalProperties":false,"properties":{"id":{"type":"integer"}}}`)})
	p, no := r.Prove(answer(200, `{"items":[]}`), nil, testNow)
	if code, builtin := p.Failure(); no != nil || code != "NOT_FOUND" || builtin || p.OK() {
		t.Errorf("%v %s", no, code)
	}
	if _, no := r.Prove(answer(200, `{"items":[{"name":"api","id":1},{"name":"api","id":2}]}`), nil, testNow); no == nil || no.Layer != LayerPick || no.Message != "success.id: 2 elements fit, exactly one must" {
		t.Errorf("%+v", no)
	}
}

func TestEach(t *testing.T) {
	s := PickSpec{Kind: PickEach, Each: &EachSpec{In: "/items", Max: 2, Pick: map[string]PickSpec{
		"name": with("/n", func(p *PickSpec) { p.Lower = true }), "tag": with("/t", func(p *PickSpec) { p.Optional = true }), "owner": {Kind: PickFrom, From: "target.owner"},
	}}}
	for body, want := range map[string]string{
		`{"items":[]}`: `[]`, `{"items":[{"n":"A","extra":1},{"n":"B","t":"x"}]}`: `[{"name":"a","owner":"acme"},{"name":"b","owner":"acme","tag":"x"}]`,
		`{"items":[{"n":"A"},{"n":"B"},{"n":"C"}]}`: "!each", `{"items":{}}`: "!each", `{"items":"AB"}`: "!each", `{"items":[{"x":1}]}`: "!absent", `{"items":[7]}`: "!absent", `{}`: "!absent", `{"items":null}`: "!null",
	} {
		if got := takeOne(t, s, body, nil); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	if _, err := compilePick(PickSpec{Kind: PickEach, Each: &EachSpec{Max: 1}}, false, 0); err == nil {
		t.Error("an each without picks was accepted")
	}
}

func TestPickMistakes(t *testing.T) {
	for name, s := range map[string]PickSpec{
		"no kind": {}, "other without map": with("/v", func(p *PickSpec) { p.HasOther = true }), "empty map": with("/v", func(p *PickSpec) { p.HasMap = true }),
		"other equals a value": with("/v", func(p *PickSpec) {
			p.HasMap, p.Map, p.HasOther, p.Other = true, map[string]any{"a": numberOne}, true, json.Number("1.0")
		}),
		"null": with("/v", func(p *PickSpec) { p.Null = "drop" }), "matches": with("/v", func(p *PickSpec) { p.Matches = "[a-z]+" }), "pointer": at("v"), "find": {Kind: PickFind}, "from": {Kind: PickFrom},
	} {
		if _, err := compilePick(s, false, 0); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestCleanDisplay(t *testing.T) {
	b := DisplayBound{Max: 20, Lines: 3}
	for in, want := range map[string]DisplayText{
		"1\n2\n3\n":              {"1\n2\n3\n", false}, // three lines, each with its end
		"1\n2\n3\n\u200e":        {"1\n2\n3\n", false},
		"1\n2\n3\n\n":            {"1\n2\n3", true},
		"\n\n\n":                 {"\n\n\n", false},
		"12345678901234567890\n": {"12345678901234567890", true}, // the end of the line is one character too many
		"plain":                  {"plain", false}, "a\tb\nc": {"a\tb\nc", false}, "a\r\nb\x00\x1b[31mc\x7f\u0085d": {"a\nb[31mcd", false}, "\u202eevil\u2066x\u200f\u061c": {"evilx", false},
		"é😀\u200d": {"é😀\u200d", false}, "1\n2\n3\n4": {"1\n2\n3", true}, strings.Repeat("é", 21): {strings.Repeat("é", 20), true}, strings.Repeat("x", 20): {strings.Repeat("x", 20), false}, strings.Repeat("\x07", 90): {"", false},
	} {
		if got := cleanDisplay(in, b); got != want {
			t.Errorf("%q: %+v, want %+v", in, got, want)
		}
	}
}

func TestChecks(t *testing.T) {
	data := map[string]any{"project_id": "prj_1", "other": "prj_2", "version": json.Number("2"), "at": "2026-01-05T09:58:00Z", "text": "2", "nested": map[string]any{"id": "prj_1"}, "same_version": json.Number("1.0")}
	cases := []struct {
		s    CheckSpec
		want string
	}{
		{CheckSpec{Kind: "same", Left: "result.project_id", Right: "target.project_id"}, ""}, {CheckSpec{Kind: "same", Left: "target.project_id", Right: "result.nested.id"}, ""}, {CheckSpec{Kind: "same", Left: "result.other", Right: "target.project_id"}, "the two sides differ"},
		{CheckSpec{Kind: "same", Left: "result.project_id", Right: "target.nope"}, "one side is absent"}, {CheckSpec{Kind: "same", Left: "result.nope", Right: "target.project_id"}, "one side is absent"}, {CheckSpec{Kind: "same", Left: "result.text", Right: "result.version"}, "the two sides differ"},
		{CheckSpec{Kind: "increased", Left: "result.version", Right: "head.version"}, ""}, {CheckSpec{Kind: "increased", Left: "result.same_version", Right: "head.version"}, "the first number is not above the second"}, {CheckSpec{Kind: "increased", Left: "result.text", Right: "head.version"}, "one side is absent or no number"},
		{CheckSpec{Kind: "fresh", At: "result.at", Within: 3 * time.Minute}, ""}, {CheckSpec{Kind: "fresh", At: "result.at", Within: time.Minute}, "the time is too long ago"}, {CheckSpec{Kind: "fresh", At: "result.project_id", Within: time.Minute}, "the time is absent or no date-time"},
		{CheckSpec{Kind: "after_call", At: "result.at", Skew: 2 * time.Second}, "the time lies before the call"}, {CheckSpec{Kind: "after_call", At: "result.at", Skew: 2 * time.Minute}, ""},
	}
	for _, c := range cases {
		k, err := compileCheck(c.s)
		if err != nil {
			t.Errorf("%+v: %v", c.s, err)
			continue
		}
		why := ""
		if fault := k.holds(facts{data: data, scope: testScope, now: testNow}); fault != nil {
			why = fault.why
		}
		if why != c.want {
			t.Errorf("%s: %q, want %q", k, why, c.want)
		}
	}
}

func TestACheckAppliesWhereTheRowPicksItsMember(t *testing.T) {
	r := mustReader(t, ReaderSpec{
		Rows: []RowSpec{
			{Status: []int{200}, HasSuccess: true, Success: map[string]PickSpec{"id": at("/id")}},
			{Status: []int{202}, Media: MediaNone, HasSuccess: true},
		},
		Result: mustParse(t, `{"type":"object","additionalProperties":false,"properties":{"id":{"type":"string","maxLength":9}}}`),
		Checks: []CheckSpec{{Kind: "same", Left: "result.id", Right: "target.project_id"}},
	})
	if _, no := r.Prove(Raw{Status: 202}, testScope, testNow); no != nil {
		t.Error(no)
	}
	if _, no := r.Prove(answer(200, `{"id":"prj_1"}`), testScope, testNow); no != nil {
		t.Error(no)
	}
	_, no := r.Prove(answer(200, `{"id":"prj_2"}`), testScope, testNow)
	if no == nil || no.Layer != LayerCheck || no.Message != "same result.id, target.project_id: the two sides differ" {
		t.Errorf("%+v", no)
	}
}

func TestRetryAfter(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"0": 0, "5": 5 * time.Second, "99999999999999999999": longestWait, "Mon, 05 Jan 2026 10:00:30 GMT": 30 * time.Second, "Mon, 05 Jan 2026 09:00:00 GMT": 0, "Mon, 05 Jan 2037 09:00:00 GMT": longestWait,
		"": -1, "-5": -1, "5.5": -1, "soon": -1, " 5": -1,
	} {
		got, ok := RetryAfter(http.Header{"Retry-After": {in}}, testNow)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %v %v", in, got, ok)
		}
	}
	if _, ok := RetryAfter(http.Header{"Retry-After": {"5", "5"}}, testNow); ok {
		t.Error("a repeated header counted")
	}
	for unit, c := range map[string]struct {
		in   string
		want time.Duration
	}{"seconds": {"7", 7 * time.Second}, "millis": {"1500", 1500 * time.Millisecond}, "unix_seconds": {"1767607210", 10 * time.Second}, "unix_millis": {"1767607200250", 250 * time.Millisecond}} {
		if got, ok := RateLimit(http.Header{"X-Reset": {c.in}}, "x-reset", unit, testNow); !ok || got != c.want {
			t.Errorf("%s: %v %v", unit, got, ok)
		}
		if _, ok := RateLimit(http.Header{"X-Reset": {"x"}}, "X-Reset", unit, testNow); ok {
			t.Errorf("%s: x counted", unit)
		}
	}
	if _, ok := RateLimit(http.Header{"X-Reset": {"5"}}, "X-Reset", "weeks", testNow); ok {
		t.Error("an unknown unit counted")
	}
}
