package vault

import (
	"strings"
	"testing"

	"chatelaine/internal/secret"
)

// TestRecoveryCodeVector holds the written form: who wrote a code down must be
// able to use it with every later version.
func TestRecoveryCodeVector(t *testing.T) {
	raw := make([]byte, codeBytes)
	for i := range raw {
		raw[i] = byte(i * 13)
	}
	const want = "006H-M9SM-8575-PT3N-GA7S-SADP-RF8D-VTQQ-A7YD"
	got := Code{secret.New(raw)}.Reveal()
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	back, err := ParseRecoveryCode([]byte(got))
	if err != nil || !back.Equal(secret.New(raw)) {
		t.Errorf("it does not come back: %v", err)
	}
}

func TestRecoveryCodesAsTyped(t *testing.T) {
	code := Code{newCode()}
	text := code.Reveal()
	swap := strings.NewReplacer("0", "o", "1", "l")
	for _, typed := range []string{text, strings.ToLower(text), " " + strings.ReplaceAll(text, "-", "  ") + "\r\n", swap.Replace(strings.ToLower(text)), strings.ReplaceAll(text, "-", "")} {
		got, err := ParseRecoveryCode([]byte(typed))
		if err != nil || !got.Equal(code.raw) {
			t.Errorf("not taken: %v", err)
		}
	}
	for what, typed := range map[string]string{
		"letters and needs": text[:40], "longer than": text + "0", "a character that no code has": "U" + text[1:], "it has 0": "",
	} {
		_, err := ParseRecoveryCode([]byte(typed))
		wantErr(t, err, ErrBadCode)
		if err == nil || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), text[:4]) {
			t.Errorf("got %v, want %q", err, what)
		}
	}
}

// TestOneTypoIsTold replaces each letter by another.
func TestOneTypoIsTold(t *testing.T) {
	text := Code{newCode()}.Reveal()
	missed := 0
	for i := range len(text) {
		if text[i] == '-' {
			continue
		}
		b := []byte(text)
		b[i] = codeDigits[(strings.IndexByte(codeDigits, b[i])+7)%len(codeDigits)]
		if _, err := ParseRecoveryCode(b); err == nil {
			missed++
		}
	}
	if missed > 1 { // twenty check bits: one in a million by chance
		t.Errorf("%d typos were not told", missed)
	}
}

func FuzzParseRecoveryCode(f *testing.F) {
	f.Add([]byte(Code{newCode()}.Reveal()))
	f.Add([]byte("----"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseRecoveryCode(b)
		if err != nil {
			wantErr(t, err, ErrBadCode)
			return
		}
		again, err := ParseRecoveryCode([]byte(Code{s}.Reveal()))
		if err != nil || !again.Equal(s) {
			t.Fatal("a code has two meanings")
		}
	})
}
