//go:build conformance

package conformance

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"testing"

	"chatelaine/internal/validate"
)

// parsingCases reads the public parsing suite: y_ must be accepted, n_ must be
// refused, i_ is left to the parser.
func parsingCases(t *testing.T) map[string][]byte {
	t.Helper()
	f, err := os.Open(parsingSuite.dir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if name := path.Base(h.Name); strings.HasSuffix(name, ".json") {
			if out[name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// refusedByName are the y_ files that our stricter rules refuse.
var refusedByName = map[string]string{
	"y_object_duplicated_key.json":           "duplicate-member",
	"y_object_duplicated_key_and_value.json": "duplicate-member",
	"y_number_double_close_to_zero.json":     "exponent",
	"y_number.json":                          "exponent",
	"y_number_real_fraction_exponent.json":   "exponent",
}

func TestParsingSuite(t *testing.T) {
	cases := parsingCases(t)
	count := map[byte]int{}
	free := map[string][]string{} // rule, "" for accepted → i_ files
	for _, name := range sortedKeys(cases) {
		count[name[0]]++
		_, err := validate.Parse(cases[name], validate.AnswerLimits())
		rule := ""
		if err != nil {
			rule = err.(*validate.ParseError).Rule
		}
		switch name[0] {
		case 'n':
			if err == nil {
				t.Errorf("%s was accepted", name)
			}
		case 'y':
			if rule != refusedByName[name] {
				t.Errorf("%s: rule %q, want %q", name, rule, refusedByName[name])
			}
		case 'i':
			free[rule] = append(free[rule], "`"+name+"`")
		}
	}
	if count['y'] != 95 || count['n'] != 188 || count['i'] != 35 {
		t.Errorf("the suite is not whole: %v", count)
	}
	report(t, "parsing suite", parsingTable(count, free))
}

func parsingTable(count map[byte]int, free map[string][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| files | verdict |\n|---|---|\n| %d `n_` | all refused |\n", count['n'])
	fmt.Fprintf(&b, "| %d `y_` | accepted, but for the %d below |\n", count['y'], len(refusedByName))
	for _, name := range sortedKeys(refusedByName) {
		fmt.Fprintf(&b, "| `%s` | refused: %s |\n", name, refusedByName[name])
	}
	for _, rule := range sortedKeys(free) {
		verdict := "refused: " + rule
		if rule == "" {
			verdict = "accepted"
		}
		fmt.Fprintf(&b, "| `i_`: %s | %s |\n", strings.Join(free[rule], ", "), verdict)
	}
	return b.String()
}
