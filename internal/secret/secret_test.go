package secret

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
)

const planted = "Xq7-planted-credential-9Zt"

// holder keeps a secret where fmt cannot call methods.
type holder struct {
	hidden  Secret
	pointer *Secret
	list    []Secret
	keyed   map[string]Secret
	any     any
	scanner *Scanner
	nested  struct{ deep struct{ s Secret } }
}

func newHolder() holder {
	s := New([]byte(planted))
	h := holder{hidden: s, pointer: &s, list: []Secret{s}, keyed: map[string]Secret{"a": s}, any: s, scanner: NewScanner(s)}
	h.nested.deep.s = s
	return h
}

// forms are the ways in which a text could still be the secret.
func forms(s string) []string {
	return []string{s, fmt.Sprintf("%x", s), fmt.Sprintf("%X", s), strings.Trim(fmt.Sprint([]byte(s)), "[]"), fmt.Sprintf("%q", s)}
}

func refuseLeak(t *testing.T, where, out string) {
	t.Helper()
	for _, f := range forms(planted) {
		if strings.Contains(out, f) || strings.Contains(out, f[:len(f)/2]) {
			t.Errorf("%s shows the secret: %s", where, out)
		}
	}
}

func TestNoVerbPrintsASecret(t *testing.T) {
	s, h := New([]byte(planted)), newHolder()
	verbs := []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%c", "%U", "%p", "%T", "%b", "%o", "%e", "%08.3f", "% x"}
	for _, verb := range verbs {
		for name, value := range map[string]any{
			"secret": s, "pointer": &s, "holder": h, "pointer to holder": &h, "scanner": h.scanner, "scanner value": *h.scanner,
			"slice": []Secret{s}, "map": map[string]holder{"k": h}, "interface": []any{s, h},
		} {
			refuseLeak(t, name+" with "+verb, fmt.Sprintf(verb, value))
		}
	}
	if got := fmt.Sprintf("%v %s %d", s, s, s); got != "[secret] [secret] [secret]" {
		t.Errorf("got %q", got)
	}
	if got := fmt.Sprint(s.String(), s.GoString()); !strings.Contains(got, "[secret]") {
		t.Errorf("got %q", got)
	}
}

func TestNoLogShowsASecret(t *testing.T) {
	s, h := New([]byte(planted)), newHolder()
	var out bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("m", "secret", s, "holder", h, "pointer", &h, "group", slog.GroupValue(slog.Any("s", s)), "err", fmt.Errorf("with %v", s))
	}
	refuseLeak(t, "slog", out.String())
	if !strings.Contains(out.String(), "[secret]") {
		t.Errorf("slog shows no placeholder: %s", out.String())
	}
}

func TestNoMarshallerTakesASecret(t *testing.T) {
	s := New([]byte(planted))
	type exported struct{ S Secret }
	var out bytes.Buffer
	marshal := map[string]func(v any) error{
		"json": func(v any) error { b, err := json.Marshal(v); out.Write(b); return err },
		"xml":  func(v any) error { return xml.NewEncoder(&out).Encode(v) },
		"gob":  func(v any) error { return gob.NewEncoder(&out).Encode(v) },
		"yaml": func(v any) error { return yaml.NewEncoder(&out).Encode(v) },
	}
	for name, f := range marshal {
		for _, v := range []any{s, exported{s}, &exported{s}} {
			err := f(v)
			if err == nil {
				t.Errorf("%s marshals %T", name, v)
				continue
			}
			refuseLeak(t, name, err.Error())
		}
	}
	refuseLeak(t, "marshalled", out.String())
	for name, f := range map[string]func() ([]byte, error){"text": s.MarshalText, "binary": s.MarshalBinary, "gob": s.GobEncode, "json": s.MarshalJSON} {
		if b, err := f(); b != nil || !errors.Is(err, ErrNoMarshal) {
			t.Errorf("%s: got %q, %v", name, b, err)
		}
	}
	// Unexported fields are not marshalled at all.
	b, err := json.Marshal([]any{newHolder()})
	if err != nil || string(b) != "[{}]" {
		t.Errorf("got %s, %v", b, err)
	}
}

func TestASecretCannotBeCompared(t *testing.T) {
	if reflect.TypeFor[Secret]().Comparable() {
		t.Error("== works on secrets")
	}
	s := New([]byte(planted))
	if reflect.DeepEqual(s, New([]byte(planted))) {
		t.Error("DeepEqual compares secrets")
	}
}

func TestEqual(t *testing.T) {
	a, b := New([]byte(planted)), New([]byte(planted))
	wiped := New([]byte(planted))
	wiped.Wipe()
	for _, c := range []struct {
		name string
		x, y Secret
		want bool
	}{
		{"same bytes", a, b, true},
		{"itself", a, a, true},
		{"other bytes", a, New([]byte(planted + "!")), false},
		{"prefix", a, New([]byte(planted[:5])), false},
		{"nothing", Secret{}, New(nil), true},
		{"nothing and something", Secret{}, a, false},
		{"wiped", wiped, a, false},
	} {
		if got := c.x.Equal(c.y); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestNewCopiesAndWipeClears(t *testing.T) {
	in := []byte(planted)
	s := New(in)
	clear(in)
	var kept []byte
	s.Use(func(b []byte) {
		kept = b
		if string(b) != planted {
			t.Errorf("got %q", b)
		}
	})
	other := s
	if s.IsZero() || s.Len() != len(planted) {
		t.Error("it holds nothing")
	}
	s.Wipe()
	s.Wipe()
	if !other.IsZero() || other.Len() != 0 || !bytes.Equal(kept, make([]byte, len(kept))) {
		t.Error("the bytes are still there")
	}
	var zero Secret
	zero.Wipe()
	called := 0
	zero.Use(func(b []byte) {
		called++
		if b != nil {
			t.Error("the zero value has bytes")
		}
	})
	if called != 1 || !zero.IsZero() {
		t.Error("the zero value is not empty")
	}
}

func TestConcurrentUseAndWipe(t *testing.T) {
	s := New([]byte(planted))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				s.Use(func(b []byte) {
					if len(b) != 0 && string(b) != planted {
						t.Error("half wiped")
					}
				})
				_ = s.Equal(s)
			}
		})
	}
	wg.Go(s.Wipe)
	wg.Wait()
}
