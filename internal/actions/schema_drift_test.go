package actions

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"chatelaine/internal/actions/formatschema"
	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/testkit/slips"
)

// The published schemas and the loader say the same. A schema never refuses
// what the loader takes; it refuses what the loader refuses wherever a schema
// can say it; what only the loader can say is listed below by rule.

// onlyLoaderCan says whether no schema can refuse for this reason.
func onlyLoaderCan(p Problem) bool {
	if onlyLoader[p.Rule] != "" {
		return true
	}
	for begin := range onlyLoaderSays {
		if strings.HasPrefix(p.Rule+" "+p.Message, begin+" ") {
			return true
		}
	}
	return false
}

var allSlips = flag.Bool("slips", false, "try every wrong value at every place, which takes a minute")

var schemaCache sync.Map

func published(t testing.TB, name string) *jsonschema.Schema {
	t.Helper()
	if s, ok := schemaCache.Load(name); ok {
		return s.(*jsonschema.Schema)
	}
	d, ok := formatschema.Named(name)
	if !ok {
		t.Fatalf("there is no schema %q", name)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(d.JSON()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///"+d.File, v); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:///" + d.File)
	if err != nil {
		t.Fatal(err)
	}
	schemaCache.Store(name, s)
	return s
}

// fitsSchema is what an editor would say about a file that the strict reader
// can read.
func fitsSchema(t testing.TB, name, text string) error {
	t.Helper()
	return fits(t, name, strictyaml.Parse(name, []byte(text), strictyaml.Limits{Bytes: maxSiteFile, Nodes: siteNodes}))
}

// FitsSchema is fitsSchema for tests outside of the package.
func FitsSchema(t testing.TB, name, text string) error { return fitsSchema(t, name, text) }

func fits(t testing.TB, name string, f *strictyaml.File) error {
	if f.Root() == nil {
		return errors.New("not readable")
	}
	return published(t, name).Validate(f.Root().Value())
}

// agrees holds a site file and a contract that the loader took against the
// schemas; every test that loads a good one comes by here.
func agrees(t testing.TB, site, contract string) {
	t.Helper()
	if err := fitsSchema(t, "targets", site); err != nil {
		t.Errorf("the loader takes the site file, its schema does not: %v\n%s", err, site)
	}
	if err := fitsSchema(t, "contract", contract); err != nil {
		t.Errorf("the loader takes the contract, its schema does not: %v\n%s", err, contract)
	}
}

func TestSchemasTakeWhatIsShipped(t *testing.T) {
	root := filepath.Join("..", "..", "contracts")
	files, err := filepath.Glob(filepath.Join(root, "*", contractFile))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d contracts: %v", len(files), err)
	}
	for _, f := range append(files, filepath.Join(root, "targets.yaml")) {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := "contract"
		if filepath.Base(f) == "targets.yaml" {
			name = "targets"
		}
		if err := fitsSchema(t, name, string(b)); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// driftDocs are files that use every key of the format; each of them loads.
func driftDocs(t testing.TB, name string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "schema", name+"-*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	var out []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	return out
}

// readers give the loader's problems with a file.
var readers = map[string]func(f *strictyaml.File) Problems{
	"contract": func(f *strictyaml.File) Problems {
		d := &draft{f: f, c: &Contract{}, codeUses: map[string]bool{}}
		d.decode()
		if len(d.f.Problems()) == 0 {
			d.bind(nil)
		}
		return d.f.Problems()
	},
	"targets": func(f *strictyaml.File) Problems {
		return parseSite(f, filepath.Join("testdata", "schema")).f.Problems()
	},
}

func inFile(text string) *strictyaml.File {
	return strictyaml.Parse("FILE", []byte(text), strictyaml.Limits{})
}

// someSlips is how many slips of one file are tried without -slips; those that
// add a key are always among them.
const someSlips = 150

func TestSchemasAndLoaderAgree(t *testing.T) {
	for _, name := range []string{"contract", "targets"} {
		for i, text := range driftDocs(t, name) {
			t.Run(fmt.Sprintf("%s %d", name, i), func(t *testing.T) {
				t.Parallel()
				agreeOnSlips(t, name, text)
			})
		}
	}
}

func agreeOnSlips(t *testing.T, name, text string) {
	f := inFile(text)
	if ps := readers[name](f); len(ps) > 0 {
		t.Fatalf("it does not load:\n%s", ps.Error())
	}
	if err := fits(t, name, f); err != nil {
		t.Fatal(err)
	}
	used, both := map[string]int{}, 0
	made := slips.Of(inFile(text).Root().Value(), slips.All)
	if !*allSlips {
		made = slips.Some(made, someSlips)
	}
	for _, m := range made {
		f := inFile(m.JSON)
		ps, err := readers[name](f), fits(t, name, f)
		switch {
		case err != nil && len(ps) == 0:
			t.Errorf("%s: the loader takes it, the schema does not: %v", m.At, err)
		case err != nil:
			both++
		default:
			saidByLoaderOnly(t, m.At, ps, used)
		}
	}
	t.Logf("%d slips, %d refused by both; only by the loader: %v", len(made), both, used)
}

// saidByLoaderOnly wants a reason for each refusal that the schema leaves out.
func saidByLoaderOnly(t *testing.T, at string, ps Problems, used map[string]int) {
	t.Helper()
	for _, p := range ps {
		used[p.Rule]++
		if !onlyLoaderCan(p) {
			t.Errorf("%s: the loader refuses it, the schema does not: %s", at, told(Problems{p}))
		}
	}
}

// What the tests of refusals refuse, the schemas refuse too, wherever they can.
func TestSchemasRefuseWhatTheLoaderRefuses(t *testing.T) {
	for _, c := range []struct{ name, good, slips string }{
		{"contract", goodContract, "contract_refusals.txt"}, {"targets", goodSite, "site_refusals.txt"},
	} {
		_, cases := readSlips(t, filepath.Join("testdata", c.slips))
		both := 0
		for _, s := range cases {
			if strings.Count(c.good, s.old) != 1 {
				continue // written for another file
			}
			text := strings.Replace(c.good, s.old, s.new, 1)
			f := inFile(text)
			ps := readers[c.name](f)
			if err := fits(t, c.name, f); err != nil {
				both++
				continue
			}
			saidByLoaderOnly(t, s.name, ps, map[string]int{})
		}
		if both == 0 {
			t.Errorf("%s: no slip was tried", c.name)
		}
	}
}

// schemaPlaces says where in the schemas stand the keys of what the loader calls
// by these words.
var schemaPlaces = map[string]map[string][]string{
	"contract": {
		"a contract": {""}, "a display text": {"properties/display/additionalProperties"},
		"an exception": {"properties/exceptions/items"}, "a code": {"properties/failures/additionalProperties"},
		"route": {"$defs/route"}, "a case": {"$defs/route/properties/cases/items"}, "approval": {"$defs/approval"},
		"request": {"$defs/request"}, "a lookup": {"$defs/lookup"}, "poll": {"$defs/poll"}, "reconcile": {"$defs/reconcile"},
		"a row": {"$defs/requestRow", "$defs/lookupRow", "$defs/pollRow", "$defs/reconcileRow"}, "failure": {"$defs/failure/anyOf/1"},
		"a value": {"$defs/from"}, "each": {"$defs/each", "$defs/pickObject/properties/each"},
		"a pick": {"$defs/pickObject"}, "find": {"$defs/pickObject/properties/find"}, "a side of compare": {"$defs/side/anyOf/4"},
		"retry": {"$defs/retry"}, "rate_limit": {"$defs/retry/properties/rate_limit"}, "idempotency": {"$defs/idempotency"},
		"fresh": {"$defs/check/properties/fresh"}, "after_call": {"$defs/check/properties/after_call"}, "signed": {"$defs/check/properties/signed"},
	},
	"targets": {
		"the site file": {""}, "a target": {"$defs/target"}, "an entry of a list": {"properties/lists/additionalProperties/additionalProperties"},
		"a key set":         {"properties/keys/additionalProperties"},
		"a target over SSH": {"$defs/sshTarget"}, "ssh": {"$defs/sshTarget/properties/ssh"},
		"a token endpoint": {"$defs/token"}, "an app's API": {"$defs/token"},
		"a signing endpoint": {"$defs/identity/oneOf/11/properties/sign"}, "repositories": {"$defs/identity/oneOf/7/properties/repositories/anyOf/1"},
	},
}

// laterOnly are keys that the loader knows only to say that this release does
// not take them.
var laterOnly = append(slices.Clone(sshKeys), "confirm", "exit")

func TestSchemasAndLoaderHaveTheSameKeys(t *testing.T) {
	for i, kind := range identityKinds { // they stand in the schema in the same order
		schemaPlaces["targets"]["an identity of kind "+kind] = []string{fmt.Sprintf("$defs/identity/oneOf/%d", i)}
	}
	for name, places := range schemaPlaces {
		taken := map[string]map[string]bool{}
		for _, text := range driftDocs(t, name) {
			f := inFile(text)
			f.Watch(func(what string, keys []string) {
				if taken[what] == nil {
					taken[what] = map[string]bool{}
				}
				for _, k := range keys {
					taken[what][k] = true
				}
			})
			readers[name](f)
		}
		d, _ := formatschema.Named(name)
		var root any
		if err := json.Unmarshal(d.JSON(), &root); err != nil {
			t.Fatal(err)
		}
		for what, keys := range taken {
			if places[what] == nil {
				t.Errorf("%s: the loader reads the keys of %q, and no place of the schema is named for it", name, what)
				continue
			}
			said := map[string]bool{}
			for _, at := range places[what] {
				for _, k := range propertiesAt(t, root, at) {
					said[k] = true
				}
			}
			for _, k := range laterOnly {
				delete(keys, k)
			}
			if what == "a case" {
				delete(keys, "environment") // the inputs that choose the target
				delete(keys, "channel")
			}
			same(t, name+": "+what, sortedKeys(keys), sortedKeys(said))
		}
		for what := range places {
			if taken[what] == nil {
				t.Errorf("%s: no file in testdata/schema has %q", name, what)
			}
		}
	}
}

func propertiesAt(t *testing.T, root any, at string) []string {
	t.Helper()
	for _, tok := range strings.FieldsFunc(at, func(r rune) bool { return r == '/' }) {
		switch v := root.(type) {
		case map[string]any:
			root = v[tok]
		case []any:
			var i int
			if _, err := fmt.Sscanf(tok, "%d", &i); err != nil || i >= len(v) {
				t.Fatalf("%s leads nowhere", at)
			}
			root = v[i]
		}
	}
	s, _ := root.(map[string]any)
	props, ok := s["properties"].(map[string]any)
	if !ok {
		t.Fatalf("%s has no properties", at)
	}
	return sortedKeys(props)
}
