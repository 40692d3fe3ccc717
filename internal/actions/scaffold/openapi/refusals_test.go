package openapi_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"chatelaine/internal/actions/scaffold/openapi"
)

func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "empty"},
		{"a list", "- openapi: 3.0.0", "no mapping"},
		{"no version", "info: {title: x}", "no OpenAPI 3.0 or 3.1"},
		{"a number for the version", "openapi: 3.0", "no OpenAPI 3.0 or 3.1"},
		{"swagger", `swagger: "2.0"`, "Swagger 2"},
		{"4", `openapi: "4.0.0"`, "no OpenAPI 3.0 or 3.1"},
		{"broken YAML", "openapi: \"3.0.0\"\n  x: [", "line 2: the file cannot be read as YAML: "},
		{"a tab in YAML", "openapi: 3.0.0\npaths:\n\t/a: {}\n", "line 3: the file cannot be read as YAML: "},
		{"broken JSON", `{"openapi": "3.0.0", "paths": {]}`, "line 1"},
		{"a member twice in JSON", `{"openapi": "3.0.0", "openapi": "3.0.0"}`, "duplicate-member"},
		{"a key twice in YAML", "openapi: 3.0.0\nopenapi: 3.0.0", "twice"},
		{"an anchor", "openapi: 3.0.0\nx: &a [1]\ny: *a", "anchors"},
		{"a tag", "openapi: !!str 3.0.0", "tags"},
		{"two documents", "openapi: 3.0.0\n---\nopenapi: 3.0.0", "several documents"},
		{"deep JSON", `{"openapi": "3.0.0", "x": ` + deep + `}`, "depth"},
		{"deep YAML", "openapi: 3.0.0\nx: " + deep, "levels"},
		{"not UTF-8", "openapi: \xff", "UTF-8"},
		{"large", strings.Repeat(" ", openapi.MaxBytes+1), "bytes"},
	} {
		d, err := openapi.Parse([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", c.name, d, err, c.want)
		}
	}
}

func TestOperationsAreFoundByIDOrByPlace(t *testing.T) {
	d := read(t, "ticket-service.json")
	for _, id := range []string{"createTicket", "POST /tickets", "post /ping"} {
		if _, err := d.Outline(openapi.Options{Operation: id, Action: "draft_one"}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	for id, want := range map[string]string{"": "no operation", "createticket": "no operation", "PUT /tickets": "no operation", "POST /ticket": "no operation"} {
		if _, err := d.Outline(openapi.Options{Operation: id, Action: "draft_one"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// one makes a description of one operation.
func one(path, operation string) string {
	return fmt.Sprintf("openapi: 3.1.0\ninfo: {title: One, version: 1}\npaths:\n  %s:\n    get: %s\n", path, operation)
}

func TestOutlineRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a path with a query", one("'/a?b=c'", "{operationId: x}"), "is none that a contract can have"},
		{"an escaped slash", one("/a%2Fb", "{operationId: x}"), "is none that a contract can have"},
		{"a dot segment", one("/a/../b", "{operationId: x}"), "is none that a contract can have"},
		{"no slash", one("a", "{operationId: x}"), "is none that a contract can have"},
		{"a parameter that has no place", one("/a", "{operationId: x, parameters: [{name: id, in: path, required: true, schema: {type: string}}]}"), "has no place"},
		{"a file of another", one("/a", "{operationId: x, parameters: [{$ref: 'other.yaml#/a'}]}"), "leads out of the file"},
		{"a URL", one("/a", "{operationId: x, parameters: [{$ref: 'https://example.com/a'}]}"), "leads out of the file"},
		{"nowhere", one("/a", "{operationId: x, parameters: [{$ref: '#/nowhere'}]}"), "leads nowhere"},
		{"a ring", one("/a", "{operationId: x, parameters: [{$ref: '#/components/a'}]}") + "components: {a: {$ref: '#/components/a'}}\n", "lead to each other"},
		{"twice", one("/a", "{operationId: x}") + "  /b: {get: {operationId: x}}\n", "2 operations"},
	} {
		d, err := openapi.Parse([]byte(c.text))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if o, err := d.Outline(openapi.Options{Operation: "x", Action: "draft_one"}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", c.name, o, err, c.want)
		}
	}
}

// A graph of references that unfolds without end is cut, and quickly.
func TestReferencesThatUnfoldAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(one("/a", "{operationId: x, responses: {'200': {description: x, content: {application/json: {schema: {$ref: '#/components/schemas/s0'}}}}}}"))
	b.WriteString("components:\n  schemas:\n")
	for i := range 40 {
		next := fmt.Sprintf("{$ref: '#/components/schemas/s%d'}", (i+1)%40)
		fmt.Fprintf(&b, "    s%d: {type: object, properties: {a: %s, b: %s, c: {allOf: [%s, %s]}}}\n", i, next, next, next, next)
	}
	d, err := openapi.Parse([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	o := outline(t, d, "x", "draft_one")
	if len(o.LeftOut) == 0 || len(o.Files()["contract.yaml"]) > 1<<20 {
		t.Errorf("%d bytes of a contract, left out: %v", len(o.Files()["contract.yaml"]), o.LeftOut)
	}
}

// Descriptions that were damaged anywhere are refused with a reason, or become a
// skeleton that loads. The same damage every time.
func TestDamagedDescriptions(t *testing.T) {
	const damages = 30
	for _, file := range samples {
		whole, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(uint64(len(file)), 2))
		made := 0
		for range damages {
			b := slices.Clone(whole)
			for range 1 + r.IntN(4) {
				b = damage(b, r)
			}
			d, err := openapi.Parse(b)
			if err != nil {
				continue
			}
			for _, op := range d.Operations() {
				o, err := d.Outline(openapi.Options{Operation: op.Method + " " + op.Path, Action: "draft_one"})
				if err != nil || len(o.Complete()) > 0 {
					continue
				}
				if _, err := o.Write(t.TempDir()); err != nil {
					t.Errorf("%v\n%s", err, b)
				}
				made++
			}
		}
		if made < damages/2 {
			t.Errorf("%s: only %d skeletons", file, made)
		}
	}
}

// damage changes, drops or repeats a piece.
func damage(b []byte, r *rand.Rand) []byte {
	const piece = 60
	i := r.IntN(len(b))
	j := min(len(b), i+r.IntN(piece))
	switch r.IntN(3) {
	case 0:
		b[i] = byte(r.IntN(utf8.RuneSelf))
		return b
	case 1:
		return slices.Concat(b[:i], b[j:])
	}
	return slices.Concat(b[:j], b[i:])
}
