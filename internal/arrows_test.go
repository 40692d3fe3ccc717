// Package internal_test holds the arrows between the rooms of docs/architecture.md:
// which package may import which, who may dial, who may read YAML, and what a
// program may never link. It asks the go command, so it sees what is compiled
// and not what somebody meant. Nothing imports it.
package internal_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "chatelaine"

// arrows is the table of docs/architecture.md: what a room may import besides
// itself. Every room may import fault.
var arrows = map[string][]string{
	"fault":    {},
	"secret":   {},
	"durable":  {},
	"validate": {"secret"},
	"auditlog": {"durable"},
	"actions":  {"validate"},
	"vault":    {"secret", "durable"},
	"executor": {"actions"},
	"sessions": {"durable"},
	"approvals": {
		"actions", "durable",
	},
	"ledger": {"durable"},
	"usage":  {"durable"},
	"gateway": {
		"secret", "durable", "validate", "auditlog", "actions", "executor",
		"sessions", "approvals", "ledger",
	},
	"loopback":     {},
	"agentapi":     {"gateway", "loopback"},
	"operatorapi":  {"gateway", "sessions", "approvals", "loopback"},
	"webui":        {"operatorapi"},
	"mcpserver":    {"agentapi", "loopback"},
	"client":       {},
	"doctor":       {},
	"contracttest": {"actions", "executor", "validate"},
	"demo":         {"client"},
}

// anywhere are the rooms without a row of their own: test fakes may use all.
var anywhere = []string{"testkit"}

// goPackage is the part of `go list -json` that the tests below read.
type goPackage struct {
	ImportPath, Name, Doc, Dir string
	GoFiles, Imports, Deps     []string
}

// room returns the first folder under internal/, "" for any other package.
func room(importPath string) string {
	rest, ok := strings.CutPrefix(importPath, module+"/internal/")
	if !ok {
		return ""
	}
	first, _, _ := strings.Cut(rest, "/")
	return first
}

// inside returns the path under internal/, such as vault/kv.
func inside(importPath string) string { return strings.TrimPrefix(importPath, module+"/internal/") }

var listOnce = sync.OnceValues(func() ([]goPackage, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Doc,Dir,GoFiles,Imports,Deps", module+"/...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = errors.New(string(exit.Stderr))
		}
		return nil, err
	}
	var all []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
})

// packages lists every package of the module that has code besides its tests.
func packages(t *testing.T) []goPackage {
	t.Helper()
	all, err := listOnce()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var out []goPackage
	for _, p := range all {
		if len(p.GoFiles) > 0 {
			out = append(out, p)
		}
	}
	if len(out) < 10 {
		t.Fatalf("go list names %d packages; this test looks at the wrong place", len(out))
	}
	return out
}

// reaches says whether p, once compiled, holds any package of the room.
func (p goPackage) reaches(name string) bool {
	return room(p.ImportPath) == name || slices.ContainsFunc(p.Deps, func(d string) bool { return room(d) == name })
}

func TestRoomsImportOnlyDownwards(t *testing.T) {
	for _, p := range packages(t) {
		from := room(p.ImportPath)
		if from == "" || slices.Contains(anywhere, from) {
			continue
		}
		allowed, known := arrows[from]
		if !known {
			t.Errorf("%s is in no row of the table: give the room its arrows here and in docs/architecture.md", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			to := room(imported)
			if to == "" || to == from || to == "fault" || slices.Contains(allowed, to) {
				continue
			}
			t.Errorf("%s imports %s; %s may import %v and fault", p.ImportPath, imported, from, allowed)
		}
	}
}

// The table itself points down: no room reaches itself through others.
func TestTableHasNoCycle(t *testing.T) {
	var visit func(name string, path []string)
	visit = func(name string, path []string) {
		if slices.Contains(path, name) {
			t.Fatalf("a cycle: %v -> %s", path, name)
		}
		for _, next := range arrows[name] {
			visit(next, append(slices.Clone(path), name))
		}
	}
	for name := range arrows {
		visit(name, nil)
	}
}

// unlinked names the rooms that a program must never hold, with the reason.
var unlinked = map[string]map[string]string{
	module + "/cmd/chatelaine": {
		"vault":       "the program that agents and people type must not be able to hold a secret",
		"gateway":     "calls are made by the daemon only",
		"ledger":      "the ledger belongs to the daemon",
		"sessions":    "sessions are decided in the daemon",
		"approvals":   "approvals are decided in the daemon",
		"agentapi":    "the listeners belong to the daemon",
		"operatorapi": "the listeners belong to the daemon",
	},
}

func TestProgramsLinkOnlyWhatTheyMay(t *testing.T) {
	for _, p := range packages(t) {
		if p.Name != "main" {
			continue
		}
		if p.reaches("testkit") {
			t.Errorf("%s links internal/testkit, which is for tests only", p.ImportPath)
		}
		for name, reason := range unlinked[p.ImportPath] {
			if p.reaches(name) {
				t.Errorf("%s links internal/%s: %s", p.ImportPath, name, reason)
			}
		}
	}
}

func TestOnlyTheDaemonJoinsVaultToExecutor(t *testing.T) {
	for _, p := range packages(t) {
		if p.ImportPath == module+"/cmd/chatelained" || room(p.ImportPath) == "testkit" {
			continue
		}
		if p.reaches("vault") && p.reaches("executor") {
			t.Errorf("%s links both internal/vault and internal/executor", p.ImportPath)
		}
	}
}

// owners says which rooms, or which one package of a room, may import a library
// that has one owner.
var owners = map[string][]string{
	"github.com/goccy/go-yaml":                 {"actions"},
	"github.com/go-jose/go-jose/v4":            {"validate", "vault"},
	"github.com/kaptinlin/jsonschema":          {"validate"},
	"github.com/santhosh-tekuri/jsonschema/v6": {"validate"},
	"github.com/hashicorp/vault/api":           {"vault/kv"},
	"github.com/zalando/go-keyring":            {"vault"},
	"github.com/godbus/dbus/v5":                {"vault", "doctor"},
	"go.etcd.io/bbolt":                         {"durable"},
	"github.com/modelcontextprotocol/go-sdk":   {"mcpserver"},
}

func TestLibrariesHaveOneOwner(t *testing.T) {
	for _, p := range packages(t) {
		for _, imported := range p.Imports {
			for library, rooms := range owners {
				if imported != library && !strings.HasPrefix(imported, library+"/") {
					continue
				}
				if !slices.Contains(rooms, room(p.ImportPath)) && !slices.Contains(rooms, inside(p.ImportPath)) {
					t.Errorf("%s imports %s, which belongs to %v", p.ImportPath, imported, rooms)
				}
			}
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// dialers are the names that open a connection or a client that would.
var dialers = map[string][]string{
	"net":                     {"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP", "Dialer"},
	"crypto/tls":              {"Dial", "DialWithDialer", "Dialer"},
	"net/http":                {"Get", "Head", "Post", "PostForm", "Client", "Transport", "DefaultClient", "DefaultTransport"},
	"net/smtp":                {"Dial", "SendMail"},
	"golang.org/x/crypto/ssh": {"Dial", "NewClientConn"},
}

// mayDial are the rooms, and single packages of a room, that open connections, and
// to whom.
var mayDial = map[string]string{
	"executor":     "outward, to the fixed targets",
	"client":       "to the daemon's own listeners",
	"contracttest": "to its own loopback servers",
	"demo":         "to the daemon it has started",
	"testkit":      "in tests",
	"vault/kv":     "outward, to the secret manager of chatelaine.yaml, when a secret lies there",
}

func TestOnlyTheExecutorDialsOutward(t *testing.T) {
	for _, p := range packages(t) {
		if mayDial[room(p.ImportPath)] != "" || mayDial[inside(p.ImportPath)] != "" {
			continue
		}
		for _, name := range p.GoFiles {
			for _, use := range dialUses(t, filepath.Join(p.Dir, name)) {
				t.Errorf("%s: only %v may open connections", use, mayDial)
			}
		}
	}
}

// dialUses finds the uses of dialers in one file. A net.Dial whose network is
// the literal "unix" stays on the machine and is let through.
func dialUses(t *testing.T, file string) []string {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	names := importNames(f)
	local := map[ast.Expr]bool{}
	var found []string
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 {
			if lit, ok := call.Args[0].(*ast.BasicLit); ok && lit.Value == `"unix"` {
				local[call.Fun] = true
			}
		}
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || local[sel] {
			return true
		}
		pkg, ok := sel.X.(*ast.Ident)
		if ok && slices.Contains(dialers[names[pkg.Name]], sel.Sel.Name) {
			found = append(found, fset.Position(sel.Pos()).String()+": "+pkg.Name+"."+sel.Sel.Name)
		}
		return true
	})
	return found
}

// The finder finds: a rule that no file can break proves nothing.
func TestDialUsesSeesEveryWayOut(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.go")
	source := `package x

import (
	far "net"
	"net/http"
)

var a, _ = far.Dial("tcp", "example.org:80")
var b, _ = far.Dial("unix", "/run/x.sock")
var c = http.Client{Transport: &http.Transport{}}
var d = far.Listen
`
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := dialUses(t, file); len(got) != 3 {
		t.Fatalf("found %v, want the far.Dial of tcp, http.Client and http.Transport", got)
	}
}

// importNames maps the names a file gives to its imports to their paths.
func importNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range f.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = path
	}
	return names
}
