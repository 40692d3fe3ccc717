package actions

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestForm(t *testing.T) {
	set, c := mustLoad(t, goodSite, edit(t, goodContract,
		"  json: {reason: {from: input.reason}, at: {from: call.now}}\n",
		"  form: {a: {b: {from: input.reason}, c: [1, true]}, tags: {from: input.labels, optional: true}, n: {from: input.note, optional: true}}\n",
		"idempotency: {header: Idempotency-Key}\n", "at_most_once: \"it starts anew each time\"\n"))
	for input, want := range map[string]string{
		goodInput: "a%5Bb%5D=fixes+retries&a%5Bc%5D%5B0%5D=1&a%5Bc%5D%5B1%5D=true",
		strings.Replace(goodInput, "{", `{"labels":["x","y&z=1"],`, 1): "a%5Bb%5D=fixes+retries&a%5Bc%5D%5B0%5D=1&a%5Bc%5D%5B1%5D=true&tags%5B0%5D=x&tags%5B1%5D=y%26z%3D1",
	} {
		r, err := mustFreeze(t, set, c, input).Request(testNow)
		if err != nil || string(r.Body()) != want || r.ContentType() != "application/x-www-form-urlencoded" {
			t.Errorf("%v %s", err, r.Body())
		}
		if r.ReuseConnection() || r.Header().Get("Idempotency-Key") != "" {
			t.Error("a change that is not idempotent reuses a connection")
		}
	}
}

func TestJSONBody(t *testing.T) {
	for _, k := range []struct{ name, body, idem, input, want string }{
		{"breaking out", "{reason: {from: input.reason}}", "{header: Idempotency-Key}", strings.Replace(goodInput, "fixes retries", `\",\"admin\":true`, 1), `{"reason":"\",\"admin\":true"}`},
		{"functions", "{a: {concat: [x, {lower: {from: input.reason}}]}, b: {base64: {from: input.reason}}, c: {json_text: {r: {from: input.reason}}}}", "{header: Idempotency-Key}", goodInput,
			`{"a":"xfixes retries","b":"Zml4ZXMgcmV0cmllcw==","c":"{\"r\":\"fixes retries\"}"}`},
		{"left out", "{n: {from: input.note, optional: true}, o: {n: {from: input.note, optional: true}}, p: {concat: [a, {from: input.note, optional: true}]}, q: [1, {from: input.note, optional: true}]}", "{header: Idempotency-Key}", goodInput,
			`{"o":{},"q":[1]}`},
		{"number as text", "{s: {text: {from: input.size, optional: true}}, t: {from: input.size, optional: true}}", "{header: Idempotency-Key}", strings.Replace(goodInput, "{", `{"size":7.0,`, 1), `{"s":"7","t":7}`},
		{"lists", "{l: {each: {from: input.labels, optional: true}, as: item, give: {name: {from: item}, by: {from: input.service}}}, j: {join: [{from: input.labels, optional: true}, \", \"]}}", "{header: Idempotency-Key}", strings.Replace(goodInput, "{", `{"labels":["a","b"],`, 1),
			`{"j":"a, b","l":[{"by":"api","name":"a"},{"by":"api","name":"b"}]}`},
		{"a member called text", "{text: {from: input.reason}}", "{header: Idempotency-Key}", goodInput, `{"text":"fixes retries"}`},
		{"members called text and from", "{text: {from: input.reason}, m: {from: here, to: there}, k: {const: {from: input.reason}}}", "{header: Idempotency-Key}", goodInput,
			`{"k":{"from":"input.reason"},"m":{"from":"here","to":"there"},"text":"fixes retries"}`},
		{"key in the body", "{reason: {from: input.reason}}", "{json: /options/client_token}", goodInput,
			`{"options":{"client_token":"` + testCall.IdempotencyKey + `"},"reason":"fixes retries"}`},
		{"key beside others", "{o: {a: 1}}", "{json: /o/token}", goodInput, `{"o":{"a":1,"token":"` + testCall.IdempotencyKey + `"}}`},
	} {
		set, c := mustLoad(t, goodSite, edit(t, goodContract, "{reason: {from: input.reason}, at: {from: call.now}}", k.body, "{header: Idempotency-Key}", k.idem))
		r, err := mustFreeze(t, set, c, k.input).Request(testNow)
		if err != nil || string(r.Body()) != k.want {
			t.Errorf("%s: %v\n got %s\nwant %s", k.name, err, r.Body(), k.want)
		}
	}
}

// A text travels as a JSON value, whatever is in it.
func TestTextStaysInItsValue(t *testing.T) {
	set, c := mustLoad(t, goodSite, goodContract)
	for _, reason := range []string{`","admin":true,"x":"`, "a\nb", "\\", "</script>", "$(id)", "{{7*7}}", "${HOME}", "'; DROP TABLE x; --"} {
		in, _ := json.Marshal(map[string]string{"service": "api", "environment": "test", "version": "1", "reason": reason})
		r, err := mustFreeze(t, set, c, string(in)).Request(testNow)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := json.Unmarshal(r.Body(), &got); err != nil || len(got) != 2 || got["reason"] != reason {
			t.Errorf("%q: %s %v", reason, r.Body(), err)
		}
	}
}

func TestForbiddenWords(t *testing.T) {
	for name, want := range map[string]string{
		"url": "url", "image_url": "url", "imageURL": "url", "URLs": "url", "base-uri": "uri", "hostName": "host", "hostname": "host", "host2": "host",
		"request_path": "path", "HTTPHeaders": "headers", "userToken": "token", "arg": "", "extra_args": "args", "queries": "query", "flag": "", "useFlags": "flags", "flag_name": "", "tokenize": "", "hostile": "", "curl": "", "transcript": "", "subscription": "", "accountant": "", "hourly": "", "meetingTranscript": "", "PRtitle": "", "cohorts": "", "cmd1": "cmd",
		"URLpath": "url", "apitoken": "token", "filepath": "path", "targethost": "host", "cmdline": "cmd", "baseurl": "url", "sqlquery": "query", "proxies": "proxy",
		"credentialhelper": "credential", "EXTRA_ARGS": "args", "extra-args": "args", "extraArgs": "args", "CREDENTIALS": "credential", "aws-region": "region", "X-Header-Name": "header", "runScript": "script",
		"description": "", "security": "", "ghost": "", "regional": "", "profileName": "profile", "accounts": "account", "empathy": "", "reason": "", "service": "",
	} {
		if got := forbiddenWord(name); (got == "") != (want == "") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]bool{
		"query": true, "Query": true, "sql": true, "callback": true, "callbackURL": true, "webhook_secret": true, "redirect_uri": true, "redirectTo": true,
		"image_url": true, "imageUrl": true, "endpoint": true, "host": true, "message": false, "title": false, "hosts": false, "ghost": false, "template": true, "variables": false,
	} {
		if forbiddenMember(name) != want {
			t.Errorf("member %s: %v", name, !want)
		}
	}
	for name, want := range map[string]bool{
		"Host": true, "cookie": true, "X-Forwarded-For": true, "x-http-method-override": true, "Impersonate-User": true, "Sudo": true, "Proxy-Authorization": true,
		"Transfer-Encoding": true, "Accept": false, "X-Team": false, "Prefer": false, "X-On-Behalf-Of": true, "Content-Length": true,
	} {
		if refusedHeader(name) != want {
			t.Errorf("header %s: %v", name, !want)
		}
	}
}
