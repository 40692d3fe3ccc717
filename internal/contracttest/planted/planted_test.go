package planted

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

func TestEveryEncodingIsFound(t *testing.T) {
	s := New("s3cret-s3cret/s3cret+x")
	for name, text := range map[string]string{
		"raw":        s.text,
		"hex":        hex.EncodeToString([]byte(s.text)),
		"HEX":        strings.ToUpper(hex.EncodeToString([]byte(s.text))),
		"base64":     base64.StdEncoding.EncodeToString([]byte(s.text)),
		"base64, 1":  base64.StdEncoding.EncodeToString([]byte("u" + s.text + "tail")),
		"base64, 2":  base64.URLEncoding.EncodeToString([]byte("u:" + s.text + "t")),
		"basic":      base64.StdEncoding.EncodeToString([]byte("user:" + s.text)),
		"percent":    percent([]byte(s.text)),
		"json":       jsonEscaped(s.text),
		"backwards":  "x+terc3s/terc3s-terc3s",
		"in a place": "{\"a\":\"" + s.text + "\"}",
	} {
		if len(s.In([]byte("…"+text+"…"))) == 0 {
			t.Errorf("%s is not found", name)
		}
		if masked := s.Mask([]byte(text)); len(s.In(masked)) > 0 || len(masked) != len(text) {
			t.Errorf("%s is not masked: %q", name, masked)
		}
	}
	if found := s.In([]byte("s3cret-s3cret/s3cret-x, and nothing else")); len(found) > 0 {
		t.Errorf("found %v where it is not", found)
	}
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s", s, s, s, s)} {
		if strings.Contains(text, "s3cret-") {
			t.Error("the secret prints")
		}
	}
	if a, b := Random(), Random(); a.Text() == b.Text() || len(a.Text()) != 40 {
		t.Error("two random secrets are alike")
	}
}
