package redact

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// Every text that must not stay, in the place where services put it.
func TestNothingStays(t *testing.T) {
	for name, c := range map[string]struct {
		value any
		gone  []string
	}{
		"secret by name":           {map[string]any{"apiToken": "abc", "client_secret": "s3cr3t-9", "X-API-Key": "k", "session_id": "77aa"}, []string{"abc", "s3cr3t-9", "77aa"}},
		"number of a phone":        {map[string]any{"phone": json.Number("4915112345678")}, []string{"4915112345678"}},
		"numbers of a secret":      {map[string]any{"otp": json.Number("845921")}, []string{"845921"}},
		"secrets in a list":        {map[string]any{"tokens": []any{"one-of-them", map[string]any{"token": "two-of-them"}}}, []string{"one-of-them", "two-of-them"}},
		"a person":                 {map[string]any{"user": map[string]any{"login": "annlee", "name": "Ann Lee", "id": json.Number("5")}}, []string{"annlee", "Ann Lee"}},
		"a person by role":         {map[string]any{"created_by": "annlee", "displayName": "Änn Lée"}, []string{"annlee", "Änn", "Lée"}},
		"an address of a person":   {map[string]any{"street": "12 High Road", "postal_code": "AB1 2CD"}, []string{"12 High Road", "AB1 2CD"}},
		"mail":                     {map[string]any{"email": "ann.lee@corp.test", "note": "ask bob@corp.test."}, []string{"ann.lee@corp.test", "bob@corp.test"}},
		"a mail that is none":      {map[string]any{"email": "annlee"}, []string{"annlee"}},
		"networks":                 {map[string]any{"note": "from 10.1.2.3 and fe80::1:2 at 10:00:00"}, []string{"10.1.2.3", "fe80::1:2"}},
		"a phone in a text":        {map[string]any{"note": "call +49 151 1234-5678 now"}, []string{"151 1234"}},
		"a token in a text":        {map[string]any{"log": "key ghp_abcdefghij0123456789abcd end, AKIAIOSFODNN7EXAMPLE"}, []string{"ghp_abcdefghij0123456789abcd", "AKIAIOSFODNN7EXAMPLE"}},
		"a signed token":           {map[string]any{"x": "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl"}, []string{"eyJhbGciOiJI", "c2lnbmF0dXJl"}},
		"a key in a text":          {map[string]any{"x": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----"}, []string{"MIIEvQIBADANBg"}},
		"a cut key":                {map[string]any{"x": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg"}, []string{"MIIEvQIBADANBg"}},
		"in an address":            {map[string]any{"url": "https://bob:hunter2@h.test/x?access_token=zzz9&page=2&sig=q1w2"}, []string{"bob:", "hunter2", "zzz9", "q1w2"}},
		"a header's value":         {map[string]any{"x": "Bearer abcdefgh12345678"}, []string{"abcdefgh12345678"}},
		"drawn by chance":          {map[string]any{"ref": "4f1d9a27c3b85e60417a2d8f9b3c5e7081a6d2f4", "id": "run_a1B2c3D4e5F6g7H8"}, []string{"4f1d9a27", "a1B2c3D4"}},
		"drawn, with its own name": {map[string]any{"trace": "3f2504e0-4f89-11d3-9a0c-0305e82c3301"}, []string{"3f2504e0", "0305e82c3301"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := json.Marshal(New(Options{}).Value(c.value))
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range c.gone {
				if strings.Contains(string(b), g) {
					t.Errorf("%q is still in %s", g, b)
				}
			}
		})
	}
}

// What is no secret and nobody's stays, so that an answer still says something.
func TestTheRestStays(t *testing.T) {
	for _, s := range []string{
		"healthy", "release-2026-01-05-hotfix", "feature/rework-of-the-front-page-2026", "2026-01-05T10:00:00Z", "10:00:00", "1.2.3", "v2.14.3", "sha256", "dep_8f2k1m9q",
		"https://h.test/a/b?page=2", "127.0.0.1", "192 of 200", "ERR_CONNECTION_REFUSED_BY_UPSTREAM", "application/json; charset=utf-8", "a:b", "",
	} {
		if got := New(Options{}).Value(map[string]any{"note": s}).(map[string]any)["note"]; got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
	doc := map[string]any{"token_type": "bearer", "token_count": json.Number("12345"), "key": "SHOP-12", "name": "build", "count": json.Number("123456789012"), "ok": true, "none": nil}
	b, _ := json.Marshal(New(Options{}).Value(doc))
	want, _ := json.Marshal(doc)
	if string(b) != string(want) {
		t.Errorf("%s, want %s", b, want)
	}
}

// The same text has one stand-in, another text another, in the same shape, and
// none of them is made of the text.
func TestStandIns(t *testing.T) {
	r := New(Options{Known: []string{"run_a1B2c3D4e5F6g7H8"}})
	got := r.Value([]any{"ann@corp.test", "bob@corp.test", "ann@corp.test", "xoxb-12ab34cd56ef78gh", "run_a1B2c3D4e5F6g7H8", "10.0.0.1", "3f2504e0-4f89-11d3-9a0c-0305e82c3301"}).([]any)
	if got[0] != got[2] || got[0] == got[1] {
		t.Errorf("%v", got)
	}
	if got[4] != "run_a1B2c3D4e5F6g7H8" {
		t.Errorf("what was asked about became %v", got[4])
	}
	for i, form := range map[int]string{0: `^person[0-9]+@example\.com$`, 3: `^xoxb-[1-9]{2}[a-z]{2}[1-9]{2}[a-z]{2}[1-9]{2}[a-z]{2}[1-9]{2}[a-z]{2}$`, 5: `^192\.0\.2\.[0-9]+$`, 6: `^[0-9a-f]{8}-[0-9a-f]{4}-1[0-9a-f]{3}-9[0-9a-f]{3}-[0-9a-f]{12}$`} {
		if !regexp.MustCompile(form).MatchString(got[i].(string)) {
			t.Errorf("%v has not the form %s", got[i], form)
		}
	}
	other := New(Options{}).Value([]any{"eve@corp.test"}).([]any)
	if other[0] != got[0] {
		t.Errorf("a stand-in depends on the text: %v, %v", other[0], got[0])
	}
	in := r.Input(map[string]any{"who": "ann@corp.test", "run": "run_a1B2c3D4e5F6g7H8"}).(map[string]any)
	if in["who"] != got[0] || in["run"] != "run_a1B2c3D4e5F6g7H8" {
		t.Errorf("%v", in)
	}
	if n := r.Counts()[kindEmail]; n != 2 {
		t.Errorf("%d addresses", n)
	}
}

// A name that was met as a member is found inside other texts; the call's own
// names stay, also joined.
func TestSweep(t *testing.T) {
	r := New(Options{Known: []string{"acme", "shop"}})
	doc := r.Value(map[string]any{
		"user": map[string]any{"login": "annlee", "name": "Ann Lee"}, "page": "https://h.test/annlee/x", "note": "annlee and Ann Lee,annlee; annleeson",
		"owner": map[string]any{"login": "acme"}, "repository": map[string]any{"full_name": "acme/shop"}, "author": "acme/shop",
	})
	b, err := json.Marshal(r.Sweep(doc))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	if strings.Contains(strings.ReplaceAll(text, "annleeson", ""), "annlee") || strings.Contains(text, "Ann Lee") || !strings.Contains(text, "annleeson") {
		t.Error(text)
	}
	if strings.Count(text, "acme/shop") != 2 || !strings.Contains(text, `{"login":"acme"}`) {
		t.Error(text)
	}
}

// A word of the contract stays, whatever it is called.
func TestKeep(t *testing.T) {
	r := New(Options{Keep: func(path []string, v any) bool { return strings.Join(path, "/") == "token/kind" }})
	got := r.Value(map[string]any{"token": map[string]any{"kind": "personal", "author": "ann"}}).(map[string]any)["token"].(map[string]any)
	if got["kind"] != "personal" || got["author"] == "ann" {
		t.Errorf("%v", got)
	}
}

// Whatever a text holds, replacing ends, keeps valid text valid, and a second
// pass finds nothing that is not a stand-in.
func FuzzText(f *testing.F) {
	f.Add("mail a@b.co from 10.1.2.3, Bearer abcdefgh12345678, ghp_abcdefghij0123456789")
	f.Add("-----BEGIN X-----\neyJhbGciOiJI.eyJzdWIiOiIx.c2ln")
	f.Fuzz(func(t *testing.T, s string) {
		r := New(Options{})
		once := r.Text(s)
		if strings.ToValidUTF8(s, "") == s && strings.ToValidUTF8(once, "") != once {
			t.Errorf("%q became invalid: %q", s, once)
		}
		for _, m := range mail.FindAllString(once, -1) {
			if !strings.Contains(m, "@example.com") && !strings.Contains(s, "@example.com") && mail.FindString(s) == m {
				t.Errorf("%q is still in %q", m, once)
			}
		}
	})
}
