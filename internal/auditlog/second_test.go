package auditlog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mutantsEnv sets how many random mutants the two verifiers are compared on.
const (
	mutantsEnv     = "CHATELAINE_TEST_MUTANTS"
	defaultMutants = 1000
	mutantsAtOnce  = 100 // folders a run of the second verifier
)

// mutate changes a record at random: a bit, a byte, a run, a cut, an insertion,
// a record dropped, doubled or moved, a file removed, replaced or renamed.
func mutate(t *testing.T, rnd *rand.Rand, dir string, spots []spot) string {
	t.Helper()
	names := segments(t, dir)
	file := names[rnd.IntN(len(names))]
	var here []spot
	for _, s := range spots {
		if s.file == file {
			here = append(here, s)
		}
	}
	a := here[rnd.IntN(len(here))]
	b := here[rnd.IntN(len(here))]
	kind := rnd.IntN(12)
	switch kind {
	case 9:
		os.Remove(filepath.Join(dir, file))
		return "remove a file"
	case 10:
		from, _ := os.ReadFile(filepath.Join(dir, names[rnd.IntN(len(names))]))
		edit(t, dir, file, func([]byte) []byte { return from })
		return "replace a file"
	case 11:
		os.Rename(filepath.Join(dir, file), filepath.Join(dir, segmentName(uint64(rnd.IntN(200)+1))))
		return "rename a file"
	}
	edit(t, dir, file, func(d []byte) []byte { return mutateBytes(rnd, kind, d, a, b) })
	return fmt.Sprint("bytes ", kind)
}

func mutateBytes(rnd *rand.Rand, kind int, d []byte, a, b spot) []byte {
	at := rnd.IntN(len(d))
	switch kind {
	case 0:
		d[at] ^= 1 << rnd.IntN(8)
	case 1:
		d[at] = byte(rnd.IntN(256))
	case 2:
		d = d[:at]
	case 3:
		clear(d[at:min(len(d), at+rnd.IntN(300))])
	case 4:
		d = slices.Insert(d, at, bytes.Repeat([]byte{byte(rnd.IntN(256))}, 1+rnd.IntN(40))...)
	case 5:
		d = slices.Delete(d, a.off, a.end)
	case 6:
		d = slices.Insert(d, a.end, bytes.Clone(d[a.off:a.end])...)
	case 7:
		if a.off > b.off {
			a, b = b, a
		}
		if a.off < b.off {
			x, y := bytes.Clone(d[a.off:a.end]), bytes.Clone(d[b.off:b.end])
			d = slices.Concat(d[:a.off], y, d[a.end:b.off], x, d[b.end:])
		}
	case 8:
		d = append(d, make([]byte, rnd.IntN(100))...)
	}
	return d
}

// TestSecondVerifier holds the Go verifier against one in another language,
// written from the format page alone: the same exit code, first broken
// sequence, offset and file on every mutant.
func TestSecondVerifier(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal("python3 is needed to run the second verifier")
	}
	mutants := defaultMutants
	if s := os.Getenv(mutantsEnv); s != "" {
		if mutants, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	dir, _ := sampleLog(t, 45)
	spots := layout(t, dir)
	rnd := rand.New(rand.NewPCG(3, 4))
	var broken, dirs []string
	for i := range mutants {
		c := filepath.Join(t.TempDir(), "m")
		if err := os.CopyFS(c, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		what := "none"
		if i > 0 {
			what = mutate(t, rnd, c, spots)
		}
		dirs, broken = append(dirs, c), append(broken, what)
		if len(dirs) == mutantsAtOnce || i == mutants-1 {
			compare(t, python, dirs, broken)
			for _, d := range dirs {
				os.RemoveAll(d)
			}
			dirs, broken = nil, nil
		}
	}
}

func compare(t *testing.T, python string, dirs, what []string) {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(python, append([]string{filepath.Join("testdata", "verify.py")}, dirs...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(dirs) {
		t.Fatalf("%d lines for %d folders", len(lines), len(dirs))
	}
	for i, d := range dirs {
		r := Verify(d)
		file := r.File
		if file == "" {
			file = "-"
		}
		if ours := fmt.Sprintf("%d %d %d %s", r.ExitCode(), r.FirstBroken, r.Offset, file); ours != lines[i] {
			t.Errorf("%s: Go %q, second verifier %q (%s)", what[i], ours, lines[i], r.Reason)
		}
	}
}

func TestSecondVerifierIsShort(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "verify.py"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b, []byte("\n")); n > 80 {
		t.Errorf("%d lines", n)
	}
}
