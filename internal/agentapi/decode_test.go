package agentapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/gateway"
)

// decoder is an API that can decode and nothing else.
func decoder() *API { return New(&gateway.Gateway{}) }

func TestDecodeCall(t *testing.T) {
	for _, c := range []struct{ name, body, pointer string }{
		{"nothing", ``, ""},
		{"not JSON", `{`, ""},
		{"two documents", `{"input":{}}{}`, ""},
		{"duplicate member", `{"input":{},"input":{}}`, ""},
		{"duplicate member inside", `{"input":{"a":1,"a":2}}`, ""},
		{"byte order mark", "\ufeff" + `{"input":{}}`, ""},
		{"invalid UTF-8", `{"input":{"a":"` + "\xff" + `"}}`, ""},
		{"lone surrogate", `{"input":{"a":"\ud800"}}`, ""},
		{"NaN", `{"input":NaN}`, ""},
		{"a list", `[]`, ""},
		{"a text", `"input"`, ""},
		{"null", `null`, ""},
		{"no input", `{}`, "/input"},
		{"input in capitals", `{"Input":{}}`, ""},
		{"one member more", `{"input":{},"url":"https://evil.example"}`, ""},
		{"approved", `{"input":{},"approved":true}`, ""},
		{"id is a number", `{"input":{},"request_id":12345678}`, "/request_id"},
		{"id is null", `{"input":{},"request_id":null}`, "/request_id"},
		{"id is empty", `{"input":{},"request_id":""}`, "/request_id"},
		{"wait is a text", `{"input":{},"wait":"5"}`, "/wait"},
		{"wait is null", `{"input":{},"wait":null}`, "/wait"},
		{"wait is a fraction", `{"input":{},"wait":1.5}`, "/wait"},
		{"wait is an exponent", `{"input":{},"wait":1e1}`, "/wait"},
		{"wait is negative", `{"input":{},"wait":-1}`, "/wait"},
		{"wait is too long", `{"input":{},"wait":51}`, "/wait"},
		{"wait is huge", `{"input":{},"wait":99999999999999999999}`, "/wait"},
		{"too deep", `{"input":` + strings.Repeat(`[`, 200) + strings.Repeat(`]`, 200) + `}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := decoder().decodeCall([]byte(c.body), &gateway.Ask{})
			var f *fault.Error
			if !errors.As(err, &f) || f.Code() != fault.InvalidArgument || len(f.Fields()) != 1 || f.Fields()[0].Pointer != c.pointer {
				t.Fatalf("%s: %v", c.body, err)
			}
			for _, word := range []string{"evil", "approved", "12345678", "999999"} {
				if strings.Contains(f.Fields()[0].Reason, word) {
					t.Errorf("the reason repeats %q: %s", word, f.Fields()[0].Reason)
				}
			}
		})
	}
	var ask gateway.Ask
	if err := decoder().decodeCall([]byte(` {"wait": 50, "request_id": "req-0001", "input": {"a": null}} `), &ask); err != nil {
		t.Fatal(err)
	}
	if m, ok := ask.Input.(map[string]any); !ok || len(m) != 1 || ask.RequestID != "req-0001" || ask.Wait != 50*time.Second {
		t.Errorf("decoded %+v", ask)
	}
}

func TestDecodeSession(t *testing.T) {
	decode := func(body string) (string, string, error) {
		r := httptest.NewRequest(http.MethodPost, "/v1/sessions", strings.NewReader(body))
		return decoder().decodeSession(httptest.NewRecorder(), r)
	}
	for _, body := range []string{
		``, `[]`, `{}`, `{"anchor":"self"}`, `{"name":7}`, `{"name":null}`, `{"name":"a","anchor":"grandparent"}`, `{"name":"a","anchor":null}`,
		`{"name":"a","uid":0}`, `{"name":"a","name":"b"}`, `{"name":"a","token":"x"}`,
	} {
		if _, _, err := decode(body); fault.CodeOf(err) != fault.InvalidArgument {
			t.Errorf("%s: %v", body, err)
		}
	}
	if name, anchor, err := decode(`{"name":"a"}`); err != nil || name != "a" || anchor != "self" {
		t.Errorf("decoded %q %q %v", name, anchor, err)
	}
}

func TestWaitQuery(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"": 0, "wait=0": 0, "wait=50": 50 * time.Second, "wait=51": -1, "wait=-1": -1, "wait=": -1, "wait=1&wait=2": -1, "wait=1s": -1,
		"wait=%2B5": -1, "wait=0x5": -1, "Wait=5": -1, "wait=5&x=1": -1, "wait=%zz": -1, "x=1": -1, "wait=1.0": -1, "wait=%205": -1, "wait=005": -1,
	} {
		got, err := waitQuery(&http.Request{URL: mustURL("/v1/calls/x?" + query)})
		if want < 0 && fault.CodeOf(err) != fault.InvalidArgument || want >= 0 && (err != nil || got != want) {
			t.Errorf("%q: %s, %v", query, got, err)
		}
	}
}

// FuzzDecodeCall: whatever comes is refused with our own words, or is exactly
// what the caller wrote.
func FuzzDecodeCall(f *testing.F) {
	for _, s := range []string{
		`{"input":{"a":1},"request_id":"req-0001","wait":5}`, `{"input":null}`, `{"input":{},"wait":-0}`, `{"input":{"\u0061":"b","a":"c"}}`,
		`{"input":{},"request_id":"\u0000"}`, `[[[[`, `{"input":1e999}`, "{\"input\":\"\xed\xa0\x80\"}",
	} {
		f.Add([]byte(s))
	}
	a := decoder()
	f.Fuzz(func(t *testing.T, body []byte) {
		var ask gateway.Ask
		err := a.decodeCall(body, &ask)
		if err != nil {
			fe := fault.From(err)
			if fe.Code() != fault.InvalidArgument || len(fe.Fields()) == 0 {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if ask.Wait < 0 || ask.Wait > WaitMax*time.Second {
			t.Errorf("%q: waits %s", body, ask.Wait)
		}
		var loose map[string]json.RawMessage
		if err := json.Unmarshal(body, &loose); err != nil {
			t.Fatalf("taken, but not JSON: %q", body)
		}
		for name := range loose {
			if name != "input" && name != "request_id" && name != "wait" {
				t.Errorf("%q: the member %q was taken", body, name)
			}
		}
	})
}
