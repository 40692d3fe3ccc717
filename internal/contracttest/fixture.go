package contracttest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/fault"
)

// Bounds of a fixture. They only keep a slip from filling the machine.
const (
	// maxFixture fits an answer a good deal larger than the daemon takes.
	maxFixture = 4 << 20
	maxAnswers = 64
)

// kinds are the words that a fixture's file name may begin with.
var kinds = []string{"accepted", "near-miss", "failure", "hostile"}

// fixture is one file, read and checked.
type fixture struct {
	action, path, file string // path opens it, file names it below the contracts folder
	era                string // the folder of an old upstream shape, as v1; "" for today's
	line               int    // of want
	name               string
	input              any
	now                time.Time
	idempotencyKey     string
	callID             string
	answers            []answer
	want               want
}

// answer is one scripted answer of the remote system.
type answer struct {
	step    string
	status  int
	headers []upstream.Header
	body    []byte
	hasBody bool
	close   string // "", "before_answer", "after_headers"
	delay   time.Duration
	repeat  bool
	tokens  map[string]token // signed texts, filled in when it is played
}

// want is what a fixture promises.
type want struct {
	ok       bool
	data     any
	hasData  bool
	display  any
	hasShown bool
	code     string
	layer    string
	sent     []sent
	hasSent  bool
}

// sent is one request as it must have left.
type sent struct {
	step         string
	method, path string
	query        map[string][]string
	headers      []upstream.Header
	body         body
	credential   string // where it must be, in the words below, or "" for the identity's own place
}

// The words for the place of a credential; any other is the name of a header.
const (
	placeNone        = "none"
	placeCertificate = "client certificate"
	placeBody        = "body " // and a pointer, or the name of a form's field
)

// standInCredential stands in a fixture for the planted secret.
const standInCredential = "${credential}"

// body is the body of a request, in one of its forms.
type body struct {
	form string // "", "json", "form", "text"
	tree any
	text string
}

// layers are the words of want.layer.
var layers = []string{"transport", "parse", "outcome", "schema", "pick", "check", "result", "echo"}

// readFixtures reads the fixtures of a contract: today's in the order of their
// names, then those of the folders v1, v2 … of old upstream shapes. All mistakes
// of all files come back together.
func readFixtures(contracts string, c *actions.Contract) ([]fixture, actions.Problems) {
	dir := filepath.Join(c.Dir(), "fixtures")
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return nil, unreadable(dir, err)
	}
	out, problems := readFolder(contracts, c, dir, "", entries)
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		sub := filepath.Join(dir, e.Name())
		inner, err := os.ReadDir(sub)
		if err != nil {
			problems = append(problems, unreadable(sub, err)...)
			continue
		}
		if !eraForm.MatchString(e.Name()) {
			problems = append(problems, strays(sub, inner)...)
			continue
		}
		fs, ps := readFolder(contracts, c, sub, e.Name(), inner)
		out, problems = append(out, fs...), append(problems, ps...)
	}
	return out, problems
}

// eraForm is the name of a folder with fixtures of an old upstream shape.
var eraForm = regexp.MustCompile(`^v[1-9][0-9]{0,3}$`)

// strays tells of fixtures in a folder that nothing reads.
func strays(dir string, entries []os.DirEntry) actions.Problems {
	for _, path := range fixtureFiles(dir, entries) {
		if kindOf(path) != "" && filepath.Ext(path) != ".json" {
			return actions.Problems{{File: path, Rule: "fixture-folder", Hint: "move it into fixtures/, or into fixtures/v1/ for an old shape",
				Message: "fixtures lie in fixtures/ or in a folder v1, v2 … below; this one is never played"}}
		}
	}
	return nil
}

func unreadable(dir string, err error) actions.Problems {
	return actions.Problems{{File: dir, Rule: "file", Message: "the folder cannot be read: " + err.Error()}}
}

// readFolder reads the fixtures of one folder.
func readFolder(contracts string, c *actions.Contract, dir, era string, entries []os.DirEntry) ([]fixture, actions.Problems) {
	var out []fixture
	var problems actions.Problems
	bodies := map[string]bool{}
	told := map[string]actions.Problems{}
	for _, path := range fixtureFiles(dir, entries) {
		f, ps := readFixture(path, c, bodies)
		told[path] = ps
		f.action, f.era, f.file = c.Action(), era, f.path
		if rel, err := filepath.Rel(contracts, f.path); err == nil {
			f.file = rel
		}
		out = append(out, f)
	}
	// A body of body_file may lie beside its fixture, under a name like its own.
	out = slices.DeleteFunc(out, func(f fixture) bool { return bodies[f.path] })
	for _, f := range out {
		problems = append(problems, told[f.path]...)
	}
	return out, problems
}

// fixtureFiles returns the files that may be fixtures: YAML under any name, so
// that a wrong name is told, and JSON whose name begins with a kind.
func fixtureFiles(dir string, entries []os.DirEntry) []string {
	var out []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch ext := filepath.Ext(e.Name()); {
		case e.IsDir():
		case ext == ".yaml" || ext == ".yml", ext == ".json" && kindOf(path) != "":
			out = append(out, path)
		}
	}
	return out
}

// kindOf returns the kind that a file's name begins with, "" for none.
func kindOf(path string) string {
	for _, k := range kinds {
		if strings.HasPrefix(filepath.Base(path), k) {
			return k
		}
	}
	return ""
}

// readFixture reads one file and adds the files of its bodies to bodies.
func readFixture(path string, c *actions.Contract, bodies map[string]bool) (fixture, actions.Problems) {
	data, err := os.ReadFile(path)
	if err != nil {
		return fixture{path: path}, actions.Problems{{File: path, Rule: "file", Message: "the file cannot be read: " + err.Error()}}
	}
	return fixtureFrom(path, data, c, bodies)
}

// fixtureFrom reads a fixture's text.
func fixtureFrom(path string, data []byte, c *actions.Contract, bodies map[string]bool) (fixture, actions.Problems) {
	d := decoder{f: strictyaml.Parse(path, data, strictyaml.Limits{Bytes: maxFixture}), dir: filepath.Dir(path), bodies: bodies, steps: stepNames(c), codes: codesOf(c)}
	fx := fixture{path: path}
	if kindOf(path) == "" {
		d.f.ReportFile("fixture-kind", "rename it", "a fixture's file name begins with its kind: %s", strings.Join(kinds, ", "))
	}
	if d.f.Root() != nil {
		d.fixture(&fx)
	}
	return fx, d.f.Problems()
}

// codesOf are the words that want.code may be in a contract's fixtures.
func codesOf(c *actions.Contract) []string {
	var out []string
	for _, code := range fault.Codes() {
		out = append(out, string(code))
	}
	for _, own := range c.OwnCodes() {
		out = append(out, own.Code)
	}
	return out
}

// stepNames are the words that step may be in a contract's fixtures.
func stepNames(c *actions.Contract) []string {
	out := append(c.Lookups(), "request")
	if _, polls := c.Poll(); polls {
		out = append(out, "poll")
	}
	if c.HasReconcile() {
		out = append(out, "reconcile")
	}
	return out
}
