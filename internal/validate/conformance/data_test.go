//go:build conformance

package conformance

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A source is a Go module that carries a public suite among its own tests. The
// pin holds the data still when the engine of the same name is upgraded.
type source struct {
	module, version string
	sum             string // of the whole module, as go.sum writes it
	folder          string // where the suite lies in it
}

var (
	schemaSuite = source{
		"github.com/kaptinlin/jsonschema", "v0.9.10", "h1:dnMgwshay3YVUjFEHn6Bnf5oZ3LE1iQAL4iB2vSmviM=",
		"testdata/JSON-Schema-Test-Suite",
	}
	// schemaSuiteLater has the required part of a later state of the suite.
	schemaSuiteLater = source{
		"github.com/google/jsonschema-go", "v0.4.3", "h1:/DBOLZTfDow7pe2GmaJNhltueGTtDKICi8V8p+DQPd0=",
		"jsonschema/testdata",
	}
	// dialectSchemas are the schemas of the dialect itself, for the references
	// of the suite to them.
	dialectSchemas = source{
		schemaSuiteLater.module, schemaSuiteLater.version, schemaSuiteLater.sum,
		"jsonschema/meta-schemas/draft2020-12",
	}
	parsingSuite = source{
		"github.com/dpb587/inspectjson-go", "v0.0.0-20251203142639-90f1442149fb", "h1:RiCz/jdb3S2DeKCn/QGIeSvkOcFJW9+yazbSoH0pNCc=",
		"testsuites/nst-JSONTestSuite/testdata.tar.gz",
	}
)

// dir gives the place of the data, which it has the go command fetch. Without
// the data nothing is proved, so its absence fails the test.
func (s source) dir(t testing.TB) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", s.module+"@"+s.version)
	cmd.Dir = t.TempDir() // outside every module: nothing enters go.mod
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.Output()
	var got struct{ Dir, Sum, Error string }
	if jsonErr := json.Unmarshal(out, &got); jsonErr != nil || got.Dir == "" {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			got.Error += " " + string(exit.Stderr)
		}
		t.Fatalf("the test data of %s %s cannot be had: %s (%v)\nThe conformance tests take it through the Go module proxy; run them once with the network on.",
			s.module, s.version, strings.TrimSpace(got.Error), err)
	}
	if got.Sum != s.sum {
		t.Fatalf("the test data of %s %s is not what it was: sum %s, pinned %s", s.module, s.version, got.Sum, s.sum)
	}
	return got.Dir + "/" + s.folder
}
