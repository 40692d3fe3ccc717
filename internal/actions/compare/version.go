package compare

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

// Bump is a step of a semantic version. The zero value is none.
type Bump uint8

// The bumps. Backward is a version that became lower; it satisfies nothing.
const (
	NoBump Bump = iota
	Patch
	Minor
	Major
	Backward
)

var bumpWords = []string{"none", "patch", "minor", "major", "backward"}

// String gives the word of the report.
func (v Bump) String() string { return bumpWords[v] }

// MarshalText writes the word, so that JSON has it.
func (v Bump) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// needed is the bump that changes need: breaking for anybody a major one,
// compatible a minor one, words a patch. Before 1.0.0 the second number takes
// the part of the first, as semantic versioning has it.
func needed(old string, changes []Change) Bump {
	need := NoBump
	for _, ch := range changes {
		switch max(ch.Agent, ch.Operator, ch.Upstream) {
		case Breaking:
			need = max(need, Major)
		case Compatible:
			need = max(need, Minor)
		case Equal:
			need = max(need, Patch)
		}
	}
	if core, _ := parts(old); isVersion(old) && core[0] == 0 && need > Patch {
		need--
	}
	return need
}

// made is the bump between two versions. A pre-release promises nothing yet:
// from one of them any step forward is enough.
func made(old, new string) Bump {
	if !isVersion(old) {
		return NoBump // of an edition that does not load
	}
	if order(new, old) < 0 {
		return Backward
	}
	a, pre := parts(old)
	b, _ := parts(new)
	switch {
	case order(new, old) == 0:
		return NoBump
	case pre != "" || b[0] > a[0]:
		return Major
	case b[1] > a[1]:
		return Minor
	}
	return Patch
}

// enough says whether a bump covers what is needed.
func enough(need, made Bump) bool { return made != Backward && made >= need }

var threeNumbers = regexp.MustCompile(`^[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}([-+]|$)`)

// isVersion says whether a text begins like a semantic version.
func isVersion(v string) bool { return threeNumbers.MatchString(v) }

// parts splits a semantic version; the loader has checked its shape.
func parts(v string) (core [3]int, pre string) {
	v, _, _ = strings.Cut(v, "+")
	v, pre, _ = strings.Cut(v, "-")
	for i, s := range strings.SplitN(v, ".", 3) {
		core[i], _ = strconv.Atoi(s)
	}
	return core, pre
}

// order is the precedence of semantic versioning 2.0.0, section 11.
func order(x, y string) int {
	a, preA := parts(x)
	b, preB := parts(y)
	for i := range a {
		if d := cmp.Compare(a[i], b[i]); d != 0 {
			return d
		}
	}
	switch {
	case preA == preB:
		return 0
	case preA == "":
		return 1
	case preB == "":
		return -1
	}
	as, bs := strings.Split(preA, "."), strings.Split(preB, ".")
	for i := range min(len(as), len(bs)) {
		if d := identifier(as[i], bs[i]); d != 0 {
			return d
		}
	}
	return cmp.Compare(len(as), len(bs))
}

// identifier orders two parts of a pre-release: numbers before words.
func identifier(x, y string) int {
	i, errX := strconv.Atoi(x)
	j, errY := strconv.Atoi(y)
	switch {
	case errX == nil && errY == nil:
		return cmp.Compare(i, j)
	case errX == nil:
		return -1
	case errY == nil:
		return 1
	}
	return strings.Compare(x, y)
}
