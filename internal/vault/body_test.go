package vault

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"chatelaine/internal/fault"
)

// bodied is a request whose body has a hole.
type bodied struct {
	headers
	form   bool
	filled []byte
	calls  int
	fail   error
}

func (b *bodied) Hole() (form, ok bool) { return b.form, true }

func (b *bodied) FillBody(write func(dst []byte) []byte) error {
	b.calls++
	if b.fail != nil {
		return b.fail
	}
	b.filled = write(make([]byte, 0, 64))
	return nil
}

func bodyBinding(name, value string) Binding {
	return Binding{Kind: KindBody, Scheme: "https", Host: "events.example", Port: 443, BasePath: "/v2", Params: []Param{{name, value}}}
}

// secretsForBodies are texts that break out of what is written carelessly.
var secretsForBodies = []string{
	planted,
	`quote " and \ backslash`, "line\nand\ttab and \x01 and \x7f", `","admin":true,"x":"`, "a&b=c&d=%2B+ ;#é", "ключ-секрет-пароль", "emoji 🗝 and \u2028 and \ufffd",
	`\u0022 is no quote here`, "</script><script>", "a=b&c=d and some more",
}

func TestABodyHoldsAnySecret(t *testing.T) {
	v, _ := create(t, cheap)
	for _, text := range secretsForBodies {
		for _, form := range []bool{false, true} {
			b := bodyBinding("json", "/routing_key")
			if form {
				b = bodyBinding("form", "token")
			}
			put(t, v, "pager", text, b)
			l, err := v.Lease(t.Context(), "pager")
			if err != nil {
				t.Fatal(err)
			}
			out := &bodied{headers: headers{}, form: form}
			if err := l.Attach(out, madeFor(b)); err != nil || len(out.headers) > 0 || out.calls != 1 {
				t.Errorf("%q: got %v, %v", text, err, out)
			}
			checkFilled(t, out, text)
			if len(l.Scan([]byte(`{"error":"bad key `+string(out.filled)+`"}`))) == 0 {
				t.Errorf("%q: %q is not found in an answer", text, out.filled)
			}
			l.Close()
		}
	}
}

// checkFilled reads what was written as a server would.
func checkFilled(t *testing.T, out *bodied, want string) {
	t.Helper()
	if out.form {
		got, err := url.ParseQuery("a=1&token=" + string(out.filled) + "&z=2")
		if err != nil || got.Get("token") != want || len(got) != 3 {
			t.Errorf("%q: the form is %q, %v", want, got, err)
		}
		return
	}
	var got map[string]string
	err := json.Unmarshal([]byte(`{"a":"1","routing_key":"`+string(out.filled)+`","z":"2"}`), &got)
	if err != nil || got["routing_key"] != want || len(got) != 3 {
		t.Errorf("%q: the document is %q, %v", want, got, err)
	}
}

func FuzzBodies(f *testing.F) {
	for _, s := range secretsForBodies {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if bodyBinding("json", "/x").checkSecret([]byte(s), true) != nil {
			return
		}
		checkFilled(t, &bodied{filled: appendJSONText(nil, []byte(s))}, s)
		checkFilled(t, &bodied{form: true, filled: appendFormText(nil, []byte(s))}, s)
	})
}

func TestBodiesThatDoNotFit(t *testing.T) {
	v, _ := create(t, cheap)
	b := bodyBinding("json", "/routing_key")
	put(t, v, "pager", planted, b)
	l, err := v.Lease(t.Context(), "pager")
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, l.Attach(headers{}, madeFor(b)), fault.Internal)
	form := &bodied{headers: headers{}, form: true}
	wantCode(t, l.Attach(form, madeFor(b)), fault.TargetNotAllowed)
	made := madeFor(b)
	made.Port = 1
	other := &bodied{headers: headers{}}
	wantCode(t, l.Attach(other, made), fault.TargetNotAllowed)
	broken := &bodied{headers: headers{}, fail: errors.New("no")}
	wantCode(t, l.Attach(broken, madeFor(b)), fault.Internal)
	l.Close()
	wantCode(t, l.Attach(other, madeFor(b)), fault.Internal)
	if form.calls+other.calls != 0 {
		t.Error("something was written")
	}
	_, err = v.Put(t.Context(), "pager", b, sec("not utf-8 \xff at all, but long"), false)
	wantErr(t, err, ErrBadIdentity)
	if err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("got %v", err)
	}
}
