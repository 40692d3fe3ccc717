package validate

import (
	"slices"
	"strings"
	"testing"
)

// A pattern in which one text is in many places at once is refused; one that
// only looks like it is not.
func TestCostOfPatterns(t *testing.T) {
	for p, costly := range map[string]bool{
		`^(a{0,30}){0,30}b$`:                   true,
		`^a{0,300}a{0,300}b$`:                  true,
		`^(a|aa){0,90}b$`:                      true,
		`^(a?){70}b$`:                          true,
		`^([a-z]{1,20}){1,20}!$`:               true,
		`^([ab]{0,10}[bc]{0,10}){0,9}!$`:       true,
		`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`: false,
		`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.){0,7}[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`: false,
		`^([a-z0-9]{1,63}\.){0,5}[a-z0-9]{1,63}$`:                                         false,

		`^[A-Za-z0-9]{1,1000}$`:                 false,
		`^[a-z]{1,20}(-[a-z0-9]{1,20}){0,6}$`:   false,
		`^[a-z0-9-]{1,80}-[a-z0-9]{1,80}$`:      false,
		`^(a{0,7}){0,7}b$`:                      false,
		`^[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}$`:  false,
		`^(queued|running|done)(/[a-z]{1,9})?$`: false,
	} {
		if got := slices.Contains(LintPattern(p), costComplaint); got != costly {
			t.Errorf("%s: costly %v, want %v", p, got, costly)
		}
	}
}

// What RE2 cannot run is refused with the reason.
func TestForeignPatterns(t *testing.T) {
	for p, why := range map[string]string{
		`^(?!-)[a-z]+$`: "look-ahead", `^(?=a)[a-z]+$`: "look-ahead", `^(?<!a)b$`: "look-behind", `^(?<=a)b$`: "look-behind",
		`^(a)\1$`: "back references", `^(?<n>a)\k<n>$`: "back references", `^\u0041$`: `\u escape`, `^\u{41}$`: `\u escape`,
		`^\cA$`: `\c escape`, `^a++$`: "possessive", `^(?>a)$`: "atomic", `^[[:word2:]]$`: "this class", `^\p{Nowhere}$`: "this class",
		`^a{1,1001}$`: "1000", `^(a$`: "bracket",
	} {
		if found := strings.Join(LintPattern(p), "; "); !strings.Contains(found, why) {
			t.Errorf("%s: %q does not say %q", p, found, why)
		}
	}
}
