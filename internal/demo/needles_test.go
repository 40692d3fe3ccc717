package demo

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

const planted = "rel-test-q7w3n5k2x9"

func TestNeedlesFindEverySpelling(t *testing.T) {
	n := needlesOf("another-token-entirely", planted)
	var wide []byte
	for _, u := range utf16.Encode([]rune(planted)) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	back := []byte(planted)
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	var escaped, percent strings.Builder
	for _, c := range []byte(planted) {
		escaped.WriteString(`\u00` + hex.EncodeToString([]byte{c}))
		percent.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
	}
	spellings := map[string]string{
		"raw": planted, "hex": hex.EncodeToString([]byte(planted)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(planted))),
		"query": url.QueryEscape(planted), "percent": percent.String(), "json": escaped.String(), "utf-16": string(wide), "reversed": string(back),
	}
	for _, before := range []string{"", "x", "xy", "Bearer "} {
		spellings["base64 after "+before] = base64.StdEncoding.EncodeToString([]byte(before + planted + "?more"))
		spellings["base64url after "+before] = base64.RawURLEncoding.EncodeToString([]byte(before + planted))
	}
	for name, s := range spellings {
		if n.in([]byte("before "+s+" after")) == 0 {
			t.Errorf("%s is not found in %q", name, s)
		}
	}
	for _, clean := range []string{"", planted[:len(planted)-1], strings.ToUpper(planted), "an answer"} {
		if hits := n.in([]byte(clean)); hits != 0 {
			t.Errorf("%d finds in %q", hits, clean)
		}
	}
}

func TestSearchFiles(t *testing.T) {
	dir, n := t.TempDir(), needlesOf(planted)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("clean", "12345")
	if f, err := searchFiles(n, dir); err != nil || f != (found{files: 1, bytes: 5}) {
		t.Errorf("clean: %+v, %v", f, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("sub/dirty", "x"+planted)
	write("sub/"+planted, "")
	if f, err := searchFiles(n, dir); err != nil || f.hits != 2 || f.files != 3 {
		t.Errorf("dirty: %+v, %v", f, err)
	}
	if _, err := searchFiles(n, filepath.Join(dir, "absent")); err == nil {
		t.Error("a folder that is not there counts as clean")
	}
}
