// Package docs_test holds the documents to the code: links lead somewhere, the
// table of codes is the catalogue, the versions of dependencies are those of
// go.mod. The folder has no code; nothing imports it.
package docs_test

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"chatelaine/internal/fault"
)

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// pages are all documents that a person reads first.
func pages(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := filepath.Glob("../contracts/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(files, top, shipped)
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			u, err := url.Parse(m[1])
			if err != nil || u.IsAbs() {
				t.Errorf("%s: the link %q is not to a file of this repository", page, m[1])
				continue
			}
			target := page
			if u.Path != "" {
				target = filepath.Join(filepath.Dir(page), u.Path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %q leads nowhere", page, m[1])
				continue
			}
			if u.Fragment != "" && !slices.Contains(anchors(read(t, target)), u.Fragment) {
				t.Errorf("%s: %s has no heading for the link %q", page, target, m[1])
			}
		}
	}
}

var (
	heading     = regexp.MustCompile("(?m)^#+ +(.+?) *$")
	notInAnchor = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// anchors are the names that a page's headings get where Markdown is shown: small
// letters, hyphens for spaces, other marks dropped.
func anchors(page string) []string {
	var out []string
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		out = append(out, strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return out
}

func TestEveryPageIsInTheIndex(t *testing.T) {
	index := read(t, "README.md")
	for _, page := range pages(t) {
		name := filepath.Base(page)
		if filepath.Dir(page) == "." && name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not name %s", name)
		}
	}
}

// codeRow is one row of the table of codes: code, status, meaning, retryable.
var codeRow = regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| (\\d{3}) \\| [^|]+ \\| (yes|no) \\| ")

func TestCodesInTheDocumentAreTheCatalogue(t *testing.T) {
	rows := map[fault.Code]bool{}
	for _, m := range codeRow.FindAllStringSubmatch(read(t, "http-api.md"), -1) {
		code := fault.Code(m[1])
		if !fault.Known(code) {
			t.Errorf("http-api.md has a row for %s, which the catalogue does not know", code)
			continue
		}
		if rows[code] {
			t.Errorf("http-api.md has two rows for %s", code)
		}
		rows[code] = true
		e := fault.New(code, nil)
		if status := strconv.Itoa(e.Status()); status != m[2] {
			t.Errorf("%s: http-api.md says %s, the catalogue %s", code, m[2], status)
		}
		if e.Retryable() != (m[3] == "yes") {
			t.Errorf("%s: http-api.md says retryable %s, the catalogue %v", code, m[3], e.Retryable())
		}
	}
	for _, code := range fault.Codes() {
		if !rows[code] {
			t.Errorf("http-api.md has no row for %s", code)
		}
	}
}

var (
	routeInCode = regexp.MustCompile(`"(/(?:v1/[^"]+|openapi\.json|metrics|healthz|readyz))"`)
	placeholder = regexp.MustCompile(`\{[^}]*\}`)
)

// Every route that the listeners have is a row of the page.
func TestRoutesAreInTheDocument(t *testing.T) {
	page := placeholder.ReplaceAllString(read(t, "http-api.md"), "{}")
	for _, file := range []string{"../internal/agentapi/agentapi.go", "../internal/operatorapi/operatorapi.go"} {
		found := routeInCode.FindAllStringSubmatch(read(t, file), -1)
		if len(found) < 5 {
			t.Errorf("%s has %d routes; this test reads the wrong file", file, len(found))
		}
		for _, m := range found {
			route := placeholder.ReplaceAllString(m[1], "{}")
			if !strings.Contains(page, " "+route+"`") && !strings.Contains(page, " "+route+"?") {
				t.Errorf("http-api.md has no row for %s of %s", m[1], file)
			}
		}
	}
}

var metricName = regexp.MustCompile(`"(chatelaine_[a-z_]+)"`)

func TestMetricsAreInTheDocument(t *testing.T) {
	page := read(t, "http-api.md")
	found := metricName.FindAllStringSubmatch(read(t, "../internal/gateway/metrics.go"), -1)
	if len(found) < 5 {
		t.Fatalf("internal/gateway/metrics.go has %d metrics; this test reads the wrong file", len(found))
	}
	for _, m := range found {
		if !strings.Contains(page, "`"+m[1]) {
			t.Errorf("http-api.md does not name the metric %s", m[1])
		}
	}
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// The block of configuration.md is what the daemon does without any file.
func TestConfigurationPageShowsTheDefaults(t *testing.T) {
	page := read(t, "configuration.md")
	block := yamlBlock.FindStringSubmatch(page)
	if block == nil {
		t.Fatal("configuration.md has no yaml block")
	}
	bare, filled := effective(t, ""), effective(t, block[1])
	for key, value := range bare {
		if filled[key] != value {
			t.Errorf("%s: configuration.md says %q, the default is %q", key, filled[key], value)
		}
		if !strings.Contains(page, "`"+key+"`") && !strings.HasPrefix(key, "log.") {
			t.Errorf("configuration.md does not explain %s", key)
		}
	}
}

// effective asks the program for its settings, by key.
func effective(t *testing.T, file string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if file != "" {
		if err := os.WriteFile(filepath.Join(dir, "chatelaine.yaml"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "-buildvcs=false", "../cmd/chatelained", "config", "--config", dir, "--state", dir, "--runtime", dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("chatelained config: %v\n%s", err, out)
	}
	settings := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if words := strings.Fields(line); len(words) >= 3 && strings.Contains(words[0], ".") {
			settings[words[0]] = words[1]
		}
	}
	if len(settings) < 10 {
		t.Fatalf("chatelained config tells %d settings:\n%s", len(settings), out)
	}
	return settings
}

// required is one line of go.mod that asks for a module directly.
var required = regexp.MustCompile(`(?m)^\t(\S+) v(\S+)$`)

// tools are not linked, so they are in no go.mod.
var tools = []string{"honnef.co/go/tools"}

func TestDependenciesAreThoseOfTheModule(t *testing.T) {
	page := read(t, "dependencies.md")
	direct := map[string]string{}
	for _, m := range required.FindAllStringSubmatch(read(t, "../go.mod"), -1) {
		direct[m[1]] = m[2]
		if !strings.Contains(page, "| `"+m[1]+"` | "+m[2]+" |") {
			t.Errorf("dependencies.md has no row for %s %s", m[1], m[2])
		}
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z0-9./_-]+)` \\| [0-9.]+ \\|")
	for _, m := range row.FindAllStringSubmatch(page, -1) {
		module := m[1]
		if strings.HasPrefix(module, "golang.org/x/crypto/") {
			module = "golang.org/x/crypto"
		}
		if direct[module] == "" && !slices.Contains(tools, module) {
			t.Errorf("dependencies.md has a row for %s, which go.mod does not ask for", m[1])
		}
	}
}

var (
	attackRow = regexp.MustCompile("(?m)^\\| [^|]+ \\| [^|]+ \\| (`[^|]+`) \\|$")
	namedTest = regexp.MustCompile("`([a-z/]+)\\.(Test[A-Za-z0-9]+)(?:/([a-z]+))?`")
	onlyTests = regexp.MustCompile("^(?:`[^`]+`(?:, )?)+$")
)

// Each attack of the threat model names tests that exist.
func TestAttacksNameTheirTests(t *testing.T) {
	_, table, ok := strings.Cut(read(t, "threat-model.md"), "## Attacks, and the test that tries each")
	if !ok {
		t.Fatal("threat-model.md has no table of attacks")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	rows := attackRow.FindAllStringSubmatch(table, -1)
	if want := strings.Count(table, "\n| ") - 1; len(rows) != want || want < 30 {
		t.Errorf("%d of %d rows name a test", len(rows), want)
	}
	for _, row := range rows {
		names := namedTest.FindAllStringSubmatch(row[1], -1)
		if !onlyTests.MatchString(row[1]) || len(names) != strings.Count(row[1], "`")/2 {
			t.Errorf("not only names of tests: %s", row[1])
		}
		for _, n := range names {
			if !hasTest(t, filepath.Join("..", n[1]), n[2]) {
				t.Errorf("there is no %s in %s", n[2], n[1])
			}
			if n[3] == "" {
				continue
			}
			if _, err := os.Stat(filepath.Join("..", n[1], "testdata", n[3]+".txt")); err != nil {
				t.Errorf("there is no script %s in %s", n[3], n[1])
			}
		}
	}
}

// hasTest says whether a folder's test files declare the function.
func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(f string) bool { return strings.Contains(read(t, f), "\nfunc "+name+"(t *testing.T)") })
}
