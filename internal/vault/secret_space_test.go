package vault

import (
	"strings"
	"testing"
)

// A token that was pasted with a space is told what is wrong with it.
func TestSecretWithASpaceAtItsEnd(t *testing.T) {
	t.Parallel()
	b := Binding{Kind: KindBearer, Scheme: "https", Host: "api.example", Port: 443}
	for _, s := range []string{"token-of-16-bytes ", " token-of-16-bytes"} {
		if err := b.checkSecret([]byte(s), false); err == nil || !strings.Contains(err.Error(), "begins or ends with a space") {
			t.Errorf("%q: %v", s, err)
		}
	}
}
