package contracttest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/contracttest/upstream"
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
	status  int
	headers []upstream.Header
	body    []byte
	hasBody bool
	close   string // "", "before_answer", "after_headers"
	delay   time.Duration
	repeat  bool
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
	method, path string
	query        map[string][]string
	headers      []upstream.Header
	body         body
	credential   string // header that must carry it, "none", or "" for the identity's own place
}

// body is the body of a request, in one of its forms.
type body struct {
	form string // "", "json", "form", "text"
	tree any
	text string
}

// layers are the words of want.layer.
var layers = []string{"transport", "parse", "outcome", "schema", "pick", "check", "result", "echo"}

// readFixtures reads the fixtures of a contract, in the order of their names.
// All mistakes of all files come back together.
func readFixtures(contracts string, c *actions.Contract) ([]fixture, actions.Problems) {
	dir := filepath.Join(c.Dir(), "fixtures")
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return nil, actions.Problems{{File: dir, Rule: "file", Message: "the folder cannot be read: " + err.Error()}}
	}
	var out []fixture
	var problems actions.Problems
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if e.IsDir() || ext != ".yaml" && ext != ".json" || !named(e.Name()) {
			continue // bodies of body_file lie here too
		}
		f, ps := readFixture(filepath.Join(dir, e.Name()))
		problems = append(problems, ps...)
		f.action = c.Action()
		f.file = f.path
		if rel, err := filepath.Rel(contracts, f.path); err == nil {
			f.file = rel
		}
		out = append(out, f)
	}
	return out, problems
}

// named says whether a file's name begins with a kind. A YAML file under
// another name is a mistake that readFixture reports.
func named(name string) bool {
	if filepath.Ext(name) == ".yaml" {
		return true
	}
	return slices.ContainsFunc(kinds, func(k string) bool { return strings.HasPrefix(name, k) })
}

func readFixture(path string) (fixture, actions.Problems) {
	data, err := os.ReadFile(path)
	if err != nil {
		return fixture{path: path}, actions.Problems{{File: path, Rule: "file", Message: "the file cannot be read: " + err.Error()}}
	}
	d := decoder{f: strictyaml.Parse(path, data, strictyaml.Limits{Bytes: maxFixture}), dir: filepath.Dir(path)}
	fx := fixture{path: path}
	if !slices.ContainsFunc(kinds, func(k string) bool { return strings.HasPrefix(filepath.Base(path), k) }) {
		d.f.ReportFile("fixture-kind", "rename it", "a fixture's file name begins with its kind: %s", strings.Join(kinds, ", "))
	}
	if d.f.Root() != nil {
		d.fixture(&fx)
	}
	return fx, d.f.Problems()
}
