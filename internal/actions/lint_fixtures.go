package actions

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// maxFixtureFile is what playing a fixture reads too.
const maxFixtureFile = 4 << 20

// fixtureKinds are what a fixture's file name begins with.
var fixtureKinds = []string{"accepted", "near-miss", "failure", "hostile"}

// fixtures wants one of each kind that proves something, and proof for every
// row that says nothing was done.
func (l *linter) fixtures() {
	dir := filepath.Join(l.c.dir, "fixtures")
	entries, _ := os.ReadDir(dir)
	have := map[string]bool{}
	var shows []fixtureAnswer
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		i := slices.IndexFunc(fixtureKinds, func(k string) bool { return strings.HasPrefix(e.Name(), k) })
		if e.IsDir() || i < 0 || ext != ".yaml" && ext != ".yml" && ext != ".json" {
			continue
		}
		want, answers := readFixture(filepath.Join(dir, e.Name()))
		// A file that is called accepted and wants a failure accepts nothing.
		if want != nil && want.Truth == (fixtureKinds[i] == "accepted") {
			have[fixtureKinds[i]] = true
		}
		shows = append(shows, answers...)
	}
	for _, k := range fixtureKinds[:3] {
		if !have[k] {
			l.say("fixtures", l.c.places.root, "add fixtures/"+k+"-….yaml with want: {ok: "+strconv.FormatBool(k == "accepted")+", …}", "there is no fixture of the kind %s", k)
		}
	}
	for i, r := range l.c.request.rows {
		if r.NotDone && !slices.ContainsFunc(shows, func(a fixtureAnswer) bool { return a.shows(r) }) {
			l.say("fixture-not-done", l.c.request.rowPos[i], "add a fixture with this answer and the code it gives", "a row says that nothing was done, and no fixture shows it")
		}
	}
}

// fixtureAnswer is what the lint reads of a fixture: the statuses answered and
// the code wanted.
type fixtureAnswer struct {
	status int
	code   string
}

func (a fixtureAnswer) shows(r validate.RowSpec) bool {
	if !slices.Contains(r.Status, a.status) || a.code == "" {
		return false
	}
	f := r.Failure
	codes := []string{f.Code, f.Other}
	for _, c := range f.Map {
		codes = append(codes, c)
	}
	return slices.Contains(codes, a.code)
}

// readFixture returns want.ok, nil for a file that is no fixture (a body lies
// here too) or cannot be read, and what it shows. Its mistakes are told where
// it is played.
func readFixture(path string) (ok *strictyaml.Node, shows []fixtureAnswer) {
	root := readFile(path, strictyaml.Limits{Bytes: maxFixtureFile}).Root()
	want := root.Get("want")
	if ok = want.Get("ok"); ok == nil || ok.Kind != strictyaml.Bool {
		return nil, nil
	}
	code, answers := want.Get("code"), root.Get("answers")
	if answers == nil || code == nil {
		return ok, nil
	}
	for _, a := range answers.Items {
		step := a.Get("step")
		if st, is := intOf(a.Get("status").Value()); is && step != nil && step.Text == stepRequest {
			shows = append(shows, fixtureAnswer{st, code.Text})
		}
	}
	return ok, shows
}
