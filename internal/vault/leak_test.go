package vault

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"chatelaine/internal/secret"
)

// printers are all the ways in which a value gets out by accident.
func printers(v any) map[string]string {
	out := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%c", "%U", "%p", "%T", "%b", "%o", "%e"} {
		out[verb] = fmt.Sprintf(verb, v)
	}
	if b, err := json.Marshal(v); err == nil {
		out["JSON"] = string(b)
	}
	var b bytes.Buffer
	if gob.NewEncoder(&b).Encode(v) == nil {
		out["gob"] = b.String()
	}
	var w walker
	w.walk(reflect.ValueOf(v))
	out["reflect"] = w.all.String()
	return out
}

// walker collects every text and every run of bytes that can be reached from a
// value, through fields that are not exported too.
type walker struct {
	all  strings.Builder
	seen map[any]bool
}

func (w *walker) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		w.all.WriteString(v.String() + "\n")
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if v.IsNil() || w.again(v) {
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			w.walk(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			w.walk(v.Field(i))
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			w.walk(it.Key())
			w.walk(it.Value())
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			for i := range v.Len() {
				w.all.WriteByte(byte(v.Index(i).Uint()))
			}
			w.all.WriteString("\n")
			return
		}
		for i := range v.Len() {
			w.walk(v.Index(i))
		}
	}
}

// again says whether the walk was here before.
func (w *walker) again(v reflect.Value) bool {
	if w.seen == nil {
		w.seen = map[any]bool{}
	}
	key := struct {
		at  uintptr
		typ reflect.Type
		n   int
	}{at: v.Pointer(), typ: v.Type()}
	if v.Kind() == reflect.Slice {
		key.n = v.Len()
	}
	was := w.seen[key]
	w.seen[key] = true
	return was
}

// TestNothingOfASecretCanBePrinted prints what the vault hands out, and itself,
// for each kind.
func TestNothingOfASecretCanBePrinted(t *testing.T) {
	t.Parallel()
	for name, k := range allKinds(t) {
		v, path := create(t, cheap)
		put(t, v, "a", k.text, k.b)
		v = reopen(t, path, cheap)
		l, err := v.Lease(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		trial, err := v.Trial(t.Context(), "a", sec(k.text), false)
		if err != nil {
			t.Fatal(err)
		}
		things := map[string]any{"the vault": v, "a lease": l, "a lease by value": struct{ inner any }{l}, "a trial": trial, "its list": v.List(), "its state": v.State(),
			"what is put": struct {
				s secret.Secret
				o PutOptions
				b Binding
			}{sec(k.text), PutOptions{Label: "l"}, k.b}}
		made := madeFor(k.b)
		if c, err := l.ClientCertificate(made); c != nil && err == nil {
			things["its certificate"], things["its key"] = c, c.PrivateKey
		}
		ssh := MadeSSH{Address: "build.example:22", User: k.b.User}
		if len(k.b.HostKeys) > 0 {
			ssh.HostKey = k.b.HostKeys[0]
		}
		if s, err := l.SSHSigner(t.Context(), ssh, "uptime", nil); err == nil {
			things["its signer"] = s
		}
		sought := scannerFor(t, k.text)
		if len(sought.Scan([]byte(k.text))) == 0 {
			t.Fatalf("%s: the test would find nothing", name)
		}
		for what, thing := range things {
			for how, text := range printers(thing) {
				if hits := sought.Scan([]byte(text)); len(hits) > 0 {
					t.Errorf("%s: %s by %s shows %q", name, what, how, text[hits[0].Offset:hits[0].Offset+hits[0].Length])
				}
			}
		}
		l.Close()
		trial.Close()
	}
}

// scannerFor finds the secret, or the private numbers of the key that it is.
func scannerFor(t *testing.T, text string) *secret.Scanner {
	t.Helper()
	if !strings.HasPrefix(text, "-----BEGIN") {
		return secret.NewScanner(sec(text))
	}
	if key, err := parseSSHKey([]byte(text)); err == nil {
		return secret.NewScanner(privateParts(key)...)
	}
	o, err := parseBundle([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return secret.NewScanner(privateParts(o.key)...)
}

// TestTheWalkerFindsWhatIsThere keeps the test above from finding nothing because
// it looks nowhere.
func TestTheWalkerFindsWhatIsThere(t *testing.T) {
	type inner struct{ text []byte }
	for _, v := range []any{struct{ hidden *inner }{&inner{[]byte(planted)}}, map[string]any{"x": [][]byte{[]byte(planted)}}, &[]any{planted}} {
		if got := printers(v)["reflect"]; !strings.Contains(got, planted) {
			t.Errorf("%T: got %q", v, got)
		}
	}
}
