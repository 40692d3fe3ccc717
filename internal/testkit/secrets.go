package testkit

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
)

// Planted is a secret that must turn up nowhere. It is written here apart from
// the product's own search, so that the two check each other.
type Planted struct {
	secret  string
	needles map[string][]byte
}

// Plant makes the searcher of a secret of at least 12 bytes.
func Plant(secret string) *Planted {
	if len(secret) < 12 {
		panic("testkit: a planted secret needs 12 bytes, or chance finds it")
	}
	p := &Planted{secret: secret, needles: map[string][]byte{}}
	b := []byte(secret)
	p.needles["raw"] = b
	p.needles["hex"] = []byte(hex.EncodeToString(b))
	p.needles["HEX"] = []byte(strings.ToUpper(hex.EncodeToString(b)))
	p.needles["percent"] = []byte(percent(b))
	p.needles["query"] = []byte(url.QueryEscape(secret))
	p.needles["json \\u"] = []byte(jsonEscaped(secret))
	r := slices.Clone(b)
	slices.Reverse(r)
	p.needles["reversed"] = r
	p.needles["utf-16le"], p.needles["utf-16be"] = wide(secret)
	for offset := range 3 {
		pad := append(make([]byte, offset), b...)
		p.needles[fmt.Sprintf("base64+%d", offset)] = inner(base64.RawStdEncoding, pad, offset)
		p.needles[fmt.Sprintf("base64url+%d", offset)] = inner(base64.RawURLEncoding, pad, offset)
	}
	return p
}

// String keeps the secret out of test output.
func (p *Planted) String() string { return "planted secret" }

// In returns the encodings in which the secret stands in b.
func (p *Planted) In(b []byte) []string {
	var out []string
	for name, n := range p.needles {
		if bytes.Contains(b, n) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Refuse fails the test if the secret stands in b; where says what b is.
func (p *Planted) Refuse(t testing.TB, where string, b []byte) {
	t.Helper()
	if found := p.In(b); len(found) > 0 {
		t.Errorf("%s holds the secret (%s)", where, strings.Join(found, ", "))
	}
}

// RefuseFiles fails the test if the secret stands in a file, or in a file's
// name, anywhere below the folders.
func (p *Planted) RefuseFiles(t testing.TB, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			p.Refuse(t, "the name of a file in "+dir, []byte(path))
			if !d.Type().IsRegular() {
				return nil
			}
			b, err := os.ReadFile(path)
			if err == nil {
				p.Refuse(t, path, b)
			}
			return err
		})
		if err != nil {
			t.Errorf("searching %s: %v", dir, err)
		}
	}
}

// RefuseProcess fails the test if the secret stands in a process's arguments or
// environment. Where the system shows neither it looks at nothing and says so.
func (p *Planted) RefuseProcess(t testing.TB, pid int) {
	t.Helper()
	for _, name := range []string{"cmdline", "environ"} {
		path := filepath.Join("/proc", strconv.Itoa(pid), name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Logf("%s is not readable here: %v", path, err)
			continue
		}
		p.Refuse(t, path, b)
	}
}

func percent(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		fmt.Fprintf(&s, "%%%02X", c)
	}
	return s.String()
}

func jsonEscaped(s string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, "\\u%04x", u)
	}
	return b.String()
}

func wide(s string) (little, big []byte) {
	for _, u := range utf16.Encode([]rune(s)) {
		little = append(little, byte(u), byte(u>>8))
		big = append(big, byte(u>>8), byte(u))
	}
	return little, big
}

// inner is the part of an encoding that does not depend on what stands before
// and behind the secret: the first group where it is shifted, and the last
// group, are left out.
func inner(e *base64.Encoding, shifted []byte, offset int) []byte {
	whole := len(shifted) / 3 * 4
	start := 0
	if offset > 0 {
		start = 4
	}
	return []byte(e.EncodeToString(shifted))[start:whole]
}
