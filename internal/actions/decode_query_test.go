package actions

import "testing"

// accepted loads a good contract with something changed.
func accepted(t *testing.T, name string, pairs ...string) {
	t.Helper()
	if _, ps := load(t, goodSite, edit(t, goodContract, pairs...)); len(ps) > 0 {
		t.Errorf("%s: %v", name, told(ps))
	}
}

// What stands just inside the bounds that contract_refusals.txt steps over.
func TestJustAllowed(t *testing.T) {
	const body, query = "{reason: {from: input.reason}, at: {from: call.now}}", "query: {note: {from: input.note, optional: true}}"
	accepted(t, "a century", body, "{at: {add_seconds: [{from: call.now}, 3162240000]}, b: {add_seconds: ['2026-01-05T10:00:00Z', -1e3]}}")
	accepted(t, "an input's seconds", body, "{at: {add_seconds: [{add_seconds: [{from: call.now}, 5]}, {from: input.size, optional: true}]}}")
	accepted(t, "an input's time", body, "{at: {add_seconds: [{from: input.when}, 60]}}",
		"required: [service,", "required: [when, service,", "    note: {type", "    when: {type: string, format: date-time, maxLength: 35}\n    note: {type")
	accepted(t, "lists in a query", query, "query: {note: {from: input.note, optional: true}, l: {from: input.labels, optional: true}, c: [a, 1, true], e: {each: {from: input.labels, optional: true}, as: l, give: {concat: [x, {from: l}]}}, t: {from: target.app}}")
	const busy = "    - status: 409\n      failure: BUSY\n"
	accepted(t, "the same status with and without a body", busy, "    - {status: 409, media: none, failure: BUSY}\n    - {status: 409, media: text, failure: BUSY}\n    - {status: 409, when: {exists: /error}, failure: BUSY}\n")
	accepted(t, "none with a constant", busy, busy+"    - {status: 204, media: none, success: {id: {const: r1}}}\n")
	accepted(t, "none with a header", busy, busy+"    - {status: 204, media: none, success: {id: {header: Location, last_segment: true}}}\n")
	accepted(t, "a pre-release", "version: 1.2.0", "version: 1.2.0-rc.1.0a+build.05")
}

// A time of a caller may be written with small letters.
func TestAddSecondsSmallLetters(t *testing.T) {
	got, err := addSeconds("2026-01-05t10:00:00z", parseJSON(t, "60"), false)
	if err != nil || got != "2026-01-05T10:01:00Z" {
		t.Errorf("%q %v", got, err)
	}
}

// An answer to HEAD has no body that a row could read.
func TestHead(t *testing.T) {
	head := edit(t, readText, `"method": "GET"`, `"method": "HEAD"`)
	if d := parseContract("contract.yaml", []byte(head)); len(d.f.Problems()) > 0 {
		t.Errorf("media: none: %v", told(d.f.Problems()))
	}
	d := parseContract("contract.yaml", []byte(edit(t, head, `"media": "none", `, "")))
	if ps := d.f.Problems(); len(ps) != 1 || ps[0].Rule != "outcome" || ps[0].Hint == "" {
		t.Errorf("a JSON body: %v", told(ps))
	}
}

// An input that is required and not declared would refuse every call.
func TestRequiredNames(t *testing.T) {
	_, ps := load(t, goodSite, edit(t, goodContract, "required: [service,", "required: [servcie, service,"))
	same(t, "a slip", told(ps), []string{`10:3 input the input requires "servcie" and has no property of that name`})
	if ps[0].Hint != `did you mean "service"?` {
		t.Errorf("hint %q", ps[0].Hint)
	}
}
