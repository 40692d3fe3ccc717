package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// TestNothingIsPrinted: what carries a secret as text prints nothing of it, alone,
// by pointer or in another value, while the wire still gets it.
func TestNothingIsPrinted(t *testing.T) {
	const planted = "tok-planted-9d2f"
	for _, v := range []any{
		AgentOptions{Token: planted}, NewSession{Token: planted}, SavedSession{Token: planted}, PutIdentity{Secret: []byte(planted)},
		AddedSlot{RecoveryCode: planted}, RotatedKey{RecoveryCode: planted}, wire{token: planted},
	} {
		var out bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%X"} {
			fmt.Fprintf(&out, verb+" "+verb+" "+verb+"\n", v, &v, []any{v})
		}
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
		hex := fmt.Sprintf("%x", planted)
		bare := strings.Trim(fmt.Sprint([]byte(planted)), "[]")
		for _, form := range []string{planted, hex, strings.ToUpper(hex), bare} {
			if strings.Contains(out.String(), form) {
				t.Errorf("%T shows %s", v, form)
			}
		}
		if !strings.Contains(out.String(), "not shown") {
			t.Errorf("%T says nothing", v)
		}
	}
	b, err := json.Marshal(NewSession{Token: planted})
	if err != nil || !bytes.Contains(b, []byte(planted)) {
		t.Errorf("the wire gets %s, %v", b, err)
	}
}
