package actions

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"chatelaine/internal/fault"
)

const wideInput = `    labels: {type: array, maxItems: 3, uniqueItems: true, items: {type: string, maxLength: 20}}
    when: {type: string, format: date, maxLength: 10}
    part: {type: object, additionalProperties: false, required: [kind], properties: {kind: {type: string, enum: [x]}}}
`

func TestParseInputRefuses(t *testing.T) {
	contract := edit(t, goodContract, "    labels: {type: array, maxItems: 3, items: {type: string, maxLength: 20}}\n", wideInput)
	_, c := mustLoad(t, goodSite, contract)
	with := func(member string) string { return strings.Replace(goodInput, "{", "{"+member+",", 1) }
	for _, k := range []struct {
		input string
		want  []string
	}{
		{`null`, []string{": must be an object"}},
		{`[]`, []string{": must be an object"}},
		{`"x"`, []string{": must be an object"}},
		{`{}`, []string{"/service: is missing", "/environment: is missing", "/version: is missing", "/reason: is missing"}},
		{with(`"url":"https://evil.example"`), []string{"/url: is not known"}},
		{with(`"a/b~c":1`), []string{"/a~1b~0c: is not known"}},
		{with(`"note":null`), []string{"/note: must be text"}},
		{with(`"note":{}`), []string{"/note: must be text"}},
		{with(`"size":"4"`), []string{"/size: must be a whole number"}},
		{with(`"size":1.5`), []string{"/size: must be a whole number"}},
		{with(`"size":10`), []string{"/size: is above the greatest allowed number"}},
		{with(`"size":-1`), []string{"/size: is below the least allowed number"}},
		{with(`"labels":["a","b","c","d"]`), []string{"/labels: has more than 3 elements"}},
		{with(`"labels":["a","a"]`), []string{"/labels/1: stands twice"}},
		{with(`"labels":[1]`), []string{"/labels/0: must be text"}},
		{with(`"labels":{}`), []string{"/labels: must be a list"}},
		{with(`"when":"2026-02-30"`), []string{"/when: is not in the format date"}},
		{with(`"part":{}`), []string{"/part/kind: is missing"}},
		{with(`"part":{"kind":"x","more":1}`), []string{"/part/more: is not known"}},
		{strings.Replace(goodInput, "test", "t\u0435st", 1), []string{"/environment: is not one of the allowed values"}},
		{strings.Replace(goodInput, "2.14", "2;14", 1), []string{"/version: does not match the pattern of the schema"}},
		{strings.Replace(goodInput, "2.14", "2.14\\n", 1), []string{"/version: does not match the pattern of the schema"}},
		{strings.Replace(goodInput, "2.14", "..", 1), []string{"/version: cannot be part of a path"}},
		{strings.Replace(goodInput, "2.14", ".", 1), []string{"/version: cannot be part of a path"}},
		{strings.Replace(goodInput, "fixes retries", "", 1), []string{"/reason: is shorter than 1 characters"}},
		{strings.Replace(goodInput, "fixes retries", strings.Repeat("x", 301), 1), []string{"/reason: is longer than 300 characters"}},
		{with(`"` + strings.Repeat("k", 300) + `":1`), []string{": is not known"}},
	} {
		_, err := c.ParseInput(parseJSON(t, k.input))
		var fe *fault.Error
		if !errors.As(err, &fe) || fe.Code() != fault.InvalidArgument {
			t.Errorf("%s: %v", k.input, err)
			continue
		}
		var got []string
		for _, f := range fe.Fields() {
			got = append(got, f.Pointer+": "+f.Reason)
		}
		same(t, k.input, got, k.want)
	}
}

// No field of an error repeats what the caller sent.
func TestParseInputEchoesNothing(t *testing.T) {
	_, c := mustLoad(t, goodSite, goodContract)
	const planted = "tok3n-planted-9f2c"
	for _, member := range []string{"service", "environment", "version", "reason", "note", "size", "labels"} {
		doc := map[string]any{"service": "api", "environment": "test", "version": "1", "reason": "x"}
		doc[member] = map[string]any{"deep": []any{planted}}
		_, err := c.ParseInput(doc)
		var fe *fault.Error
		if !errors.As(err, &fe) {
			t.Fatal(member)
		}
		b, _ := json.Marshal(fe.Fields())
		if strings.Contains(string(b)+fe.Message()+fe.Error(), planted) {
			t.Errorf("%s: %s %s", member, b, fe.Error())
		}
	}
}

func TestInputDigest(t *testing.T) {
	_, c := mustLoad(t, goodSite, goodContract)
	a, err := c.ParseInput(parseJSON(t, goodInput))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := c.ParseInput(parseJSON(t, ` {"reason":"fixes retries","version":"2.14","environment":"t\u0065st","service":"api"}`))
	if a.Digest("x") != b.Digest("x") || string(a.Canonical()) != string(b.Canonical()) {
		t.Error("one input, two digests")
	}
	if a.Digest("x") == a.Digest("y") {
		t.Error("the action is not under the digest")
	}
	d, _ := c.ParseInput(parseJSON(t, strings.Replace(goodInput, "retries", "retry", 1)))
	if a.Digest("x") == d.Digest("x") {
		t.Error("two inputs, one digest")
	}
}

func TestEnvelope(t *testing.T) {
	_, c := mustLoad(t, goodSite, edit(t, goodContract, "idempotency: {header", "display: {log: {max: 20, lines: 2}}\nidempotency: {header"))
	const id = `"request_id":"act_01J0000000"`
	const oops = `"message":"Another release is running; nothing was started.","retryable":true`
	failure := func(inner string) string {
		return `{"ok":false,"action":"start_release",` + id + `,"error":{` + inner + `}}`
	}
	for _, k := range []struct {
		doc  string
		good bool
	}{
		{`{"ok":true,"action":"start_release",` + id + `,"data":{"id":"r1"}}`, true},
		{`{"ok":true,"action":"start_release",` + id + `,"data":{"id":"r1"},"display":{"log":{"text":"x","truncated":false}}}`, true},
		{`{"ok":true,"action":"start_release",` + id + `,"data":{"id":"a sentence"}}`, false},
		{`{"ok":true,"action":"start_release",` + id + `,"data":{"id":"r1","more":1}}`, false},
		{`{"ok":true,"action":"start_release",` + id + `,"data":{"id":"r1"},"error":{}}`, false},
		{`{"ok":true,"action":"other",` + id + `,"data":{"id":"r1"}}`, false},
		{`{"ok":true,"action":"start_release","data":{"id":"r1"}}`, false},
		{`{"ok":true,"action":"start_release",` + id + `,"data":{"id":"r1"},"display":{"log":"x"}}`, false},
		{failure(`"code":"BUSY",` + oops + `,` + id), true},
		{failure(`"code":"VAULT_LOCKED","message":"The vault is locked; the operator must unlock it.","retryable":true,` + id + `,"retry_after_seconds":5`), true},
		{failure(`"code":"INVALID_ARGUMENT","message":"The input does not fit the contract of this action.","retryable":false,` + id + `,"fields":[{"pointer":"/a","reason":"is missing"}]`), true},
		{failure(`"code":"BUSY",` + oops + `,` + id + `,"fields":[]`), false},
		{failure(`"code":"EVIL",` + oops + `,` + id), false},
		{failure(`"code":"BUSY","message":"<html>upstream text</html>","retryable":true,` + id), false},
		{failure(`"code":"BUSY",` + oops), false},
	} {
		if v := c.EnvelopeSchema().Validate(parseJSON(t, k.doc)); (v == nil) != k.good {
			t.Errorf("%s: %v", k.doc, v)
		}
	}
	for doc, good := range map[string]bool{
		`{"ok":false,"action":"",` + id + `,"error":{"code":"UNKNOWN_ACTION","message":"There is no such action for this caller.","retryable":false,` + id + `}}`: true,
		`{"ok":true,"action":"",` + id + `,"data":{}}`: false,
	} {
		if v := BaseEnvelope().Validate(parseJSON(t, doc)); (v == nil) != good {
			t.Errorf("base: %s: %v", doc, v)
		}
	}
}

// Every code of the API, with both of its messages, fits the envelope.
func TestEnvelopeTakesEveryCode(t *testing.T) {
	_, c := mustLoad(t, goodSite, goodContract)
	for _, code := range fault.Codes() {
		for _, e := range []*fault.Error{fault.New(code, nil), fault.New(code, nil).OfChange()} {
			doc := map[string]any{
				"ok": false, "action": "start_release", "request_id": "act_01J0000000",
				"error": map[string]any{"code": string(e.Code()), "message": e.Message(), "retryable": e.Retryable(), "request_id": "act_01J0000000"},
			}
			if v := c.EnvelopeSchema().Validate(doc); v != nil {
				t.Errorf("%s: %v", code, v)
			}
		}
	}
}

// A result schema with references of its own still works inside the envelope.
func TestEnvelopeRebasesReferences(t *testing.T) {
	_, c := mustLoad(t, goodSite, edit(t, goodContract,
		"properties: {id: {type: string, pattern: '^r[0-9]{1,8}$', maxLength: 9}}}",
		"properties: {id: {$ref: '#/$defs/id'}}, $defs: {id: {type: string, pattern: '^r[0-9]{1,8}$', maxLength: 9}}}"))
	for id, good := range map[string]bool{"r1": true, "x": false} {
		doc := map[string]any{"ok": true, "action": "start_release", "request_id": "act_01J0000000", "data": map[string]any{"id": id}}
		if v := c.EnvelopeSchema().Validate(doc); (v == nil) != good {
			t.Errorf("%s: %v", id, v)
		}
	}
}

// What was checked stays as it was, whatever its giver does with it later.
func TestInputIsACopy(t *testing.T) {
	set, c := mustLoad(t, goodSite, goodContract)
	doc, _ := parseJSON(t, strings.Replace(goodInput, "{", `{"labels":["a"],`, 1)).(map[string]any)
	in, err := c.ParseInput(doc)
	if err != nil {
		t.Fatal(err)
	}
	labels, _ := doc["labels"].([]any)
	labels[0], doc["environment"] = "changed", "production"
	in.Value()["service"] = "worker"
	r, err := set.Resolve(c, in)
	if err != nil || r.Target().Name() != "deploy-test" || in.Value()["service"] != "api" {
		t.Error("the input changed after it was checked")
	}
	if got, _ := in.Value()["labels"].([]any); got[0] != "a" {
		t.Error("a list of the input changed after it was checked")
	}
}
