package actions

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"chatelaine/internal/actions/formatschema"
	"chatelaine/internal/actions/strictyaml"
)

// The published schemas and the loader say the same. A schema never refuses
// what the loader takes; it refuses what the loader refuses wherever a schema
// can say it; what only the loader can say is listed below by rule.

// onlyLoader are the rules that no schema can say, each with the reason.
var onlyLoader = map[string]string{
	"ask-missing":             "the schema says it where the effects are written",
	"action":                  "the folder's name",
	"approval":                "placeholders of a sentence",
	"body":                    "which media types fit which body",
	"check":                   "paths of the result, and times",
	"duplicate-key":           "a value has each key once",
	"form":                    "keys inside each other",
	"not-in-this-release":     "what later steps of this release's loader take",
	"number":                  "the spelling of numbers in YAML",
	"effect-method":           "the effect stands elsewhere in the file",
	"exception":               "the rules of the lint",
	"failure-code":            "the contract's own codes, and which row may give which",
	"failures":                "the codes of the API",
	"header":                  "the same header in another case",
	"header-refused":          "names that a contract may not set, in any case",
	"header-value":            "where a value comes from",
	"idempotency":             "the header and the member that the daemon writes",
	"identity":                "which headers carry a credential",
	"identity-unknown":        "names of the same file",
	"input":                   "required names that are no property",
	"input-member":            "values of the caller under another's name",
	"input-name":              "words in any case style",
	"keys-unknown":            "names of the site file",
	"once":                    "a sentence beside a broken one",
	"outcome":                 "rows that depend on the method, the effect or one another",
	"outcome-end":             "how a row ends depends on the effect and on whether there is a poll",
	"outcome-overlap":         "rows beside each other",
	"outcome-status":          "statuses that a change cannot have, and repeats across spellings",
	"path":                    "the grammar of a template",
	"path-folder":             "what an input may hold",
	"path-input":              "what an input may hold",
	"pattern":                 "the grammar of a pattern",
	"pick":                    "equal values of a map",
	"pick-input":              "where a value comes from",
	"pick-missing":            "the members of the result",
	"pick-unknown":            "the members of the result",
	"query":                   "what a value is once it is built",
	"range":                   "lengths of time",
	"refused-member":          "names at any depth of a form",
	"result-free-text":        "the proof of a schema",
	"result-map":              "the proof of a schema",
	"retry":                   "whether the change declares idempotency",
	"route":                   "the inputs",
	"route-case":              "every combination of the inputs",
	"schema":                  "compilation",
	"schema-empty":            "the proof of a schema",
	"schema-open-object":      "the proof of a schema",
	"schema-recursion":        "references",
	"schema-ref":              "references",
	"schema-untyped":          "the proof of a schema",
	"schema-value":            "equal values",
	"target-unknown":          "names of the site file",
	"text":                    "control characters and spaces at the ends",
	"text-body":               "what an input may hold",
	"url":                     "the parts of a URL",
	"address":                 "loopback and private addresses",
	"ca":                      "other files",
	"keys":                    "other files",
	"value":                   "names in scope",
	"value-optional":          "whether an input is required",
	"value-path":              "the inputs, the target's constants and the lookups",
	"value-time":              "what a value is",
	"value-type":              "what a value is",
	"capture":                 "what a captured value may hold",
	"reconcile":               "what binds the row to the inputs",
	"lookup":                  "names in scope",
	"poll":                    "the effect stands elsewhere in the file",
	"schema-pattern":          "the grammar of a pattern",
	"schema-format":           "formats beside other keywords",
	"schema-unbounded-array":  "the proof of a schema",
	"schema-unbounded-number": "the proof of a schema",
	"schema-unbounded-string": "the proof of a schema",
}

// onlyLoaderSays are sentences of rules that a schema can say elsewhere.
var onlyLoaderSays = map[string]string{
	"unknown-key a case": "the inputs that choose the target are the keys",
	"missing-key a case": "the inputs that choose the target are the keys",
}

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
	root := strictyaml.Parse(name, []byte(text), strictyaml.Limits{Bytes: maxSiteFile, Nodes: siteNodes}).Root()
	if root == nil {
		return errors.New("not readable")
	}
	return published(t, name).Validate(root.Value())
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
func driftDocs(t *testing.T, name string) []string {
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

// reader gives the loader's problems with a text, and what it says it takes.
type reader func(text string, watch func(string, []string)) Problems

var readers = map[string]reader{
	"contract": func(text string, watch func(string, []string)) Problems {
		d := &draft{f: strictyaml.Parse("contract.yaml", []byte(text), strictyaml.Limits{}), c: &Contract{}, codeUses: map[string]bool{}}
		d.f.Watch(watch)
		d.decode()
		if len(d.f.Problems()) == 0 {
			d.bind(nil)
		}
		return d.f.Problems()
	},
	"targets": func(text string, watch func(string, []string)) Problems {
		f := strictyaml.Parse("targets.yaml", []byte(text), strictyaml.Limits{})
		f.Watch(watch)
		return parseSite(f, filepath.Join("testdata", "schema")).f.Problems()
	},
}

func ignore(string, []string) {}

// mutant is a file with one slip, and where the slip is.
type mutant struct {
	at, text string
}

// wrong are values of every kind; one of them is wrong nearly everywhere.
var wrong = []any{nil, true, false, json.Number("7"), json.Number("-1.5"), "zzz zzz", "", []any{}, []any{nil}, []any{"zzz"}, map[string]any{}, map[string]any{"zzz": "zzz"}}

// slipsEach is how many of them are tried at one place without -slips; they go
// round, so that all are tried somewhere.
const slipsEach = 3

// mutants makes every file that is one small slip away from a good one: a key
// too much, a key too few, a value of another kind, a word that is none.
func mutants(doc any) []mutant {
	var out []mutant
	emit := func(at string) {
		b, err := json.Marshal(doc)
		if err != nil {
			panic(err)
		}
		out = append(out, mutant{at, string(b)})
	}
	var walk func(v any, set func(any), at string)
	walk = func(v any, set func(any), at string) {
		if set != nil {
			for i, w := range wrong {
				if !*allSlips && (i+len(out))%(len(wrong)/slipsEach) != 0 {
					continue
				}
				set(w)
				emit(fmt.Sprintf("%s = wrong[%d]", at, i))
			}
			if s, ok := v.(string); ok {
				set(s + "z")
				emit(at + " + z")
			}
			set(v)
		}
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				old := v[k]
				delete(v, k)
				emit(at + " without " + k)
				v[k+"z"] = old
				emit(at + ": " + k + "z")
				delete(v, k+"z")
				v[k] = old
				walk(old, func(x any) { v[k] = x }, at+"/"+k)
			}
			v["zzz"] = "zzz"
			emit(at + " with zzz")
			delete(v, "zzz")
		case []any:
			for i := range v {
				old := v[i]
				walk(old, func(x any) { v[i] = x }, fmt.Sprintf("%s/%d", at, i))
			}
		}
	}
	walk(doc, nil, "")
	return out
}

func TestSchemasAndLoaderAgree(t *testing.T) {
	for _, name := range []string{"contract", "targets"} {
		used := map[string]int{}
		total, refusedBoth := 0, 0
		for i, text := range driftDocs(t, name) {
			if ps := readers[name](text, ignore); len(ps) > 0 {
				t.Fatalf("%s %d does not load:\n%s", name, i, ps.Error())
			}
			if err := fitsSchema(t, name, text); err != nil {
				t.Fatalf("%s %d: %v", name, i, err)
			}
			doc := strictyaml.Parse(name, []byte(text), strictyaml.Limits{}).Root().Value()
			for _, m := range mutants(doc) {
				ps, err := readers[name](m.text, ignore), fitsSchema(t, name, m.text)
				total++
				switch {
				case err != nil && len(ps) == 0:
					t.Errorf("%s %d %s: the loader takes it, the schema does not: %v", name, i, m.at, err)
				case err == nil && len(ps) > 0:
					for _, p := range ps {
						used[p.Rule]++
						if !onlyLoaderCan(p) {
							t.Errorf("%s %d %s: the loader refuses it, the schema does not: %s", name, i, m.at, told(Problems{p}))
						}
					}
				case err != nil:
					refusedBoth++
				}
			}
		}
		t.Logf("%s: %d slips, %d refused by both; only the loader: %v", name, total, refusedBoth, used)
	}
}

// What the tests of refusals refuse, the schemas refuse too, wherever they can.
func TestSchemasRefuseWhatTheLoaderRefuses(t *testing.T) {
	for _, c := range []struct{ name, good, slips string }{
		{"contract", goodContract, "contract_refusals.txt"}, {"targets", goodSite, "site_refusals.txt"},
	} {
		_, slips := readSlips(t, filepath.Join("testdata", c.slips))
		both := 0
		for _, s := range slips {
			if strings.Count(c.good, s.old) != 1 {
				continue // written for another file
			}
			text := strings.Replace(c.good, s.old, s.new, 1)
			ps := readers[c.name](text, ignore)
			err := fitsSchema(t, c.name, text)
			if err != nil {
				both++
				continue
			}
			for _, p := range ps {
				if !onlyLoaderCan(p) {
					t.Errorf("%s: the loader refuses it, the schema does not: %s", s.name, told(Problems{p}))
				}
			}
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
		"request": {"$defs/request"}, "a row": {"$defs/requestRow", "$defs/lookupRow", "$defs/pollRow", "$defs/reconcileRow"}, "failure": {"$defs/failure/anyOf/1"},
		"a value": {"$defs/from"}, "each": {"$defs/each", "$defs/pickObject/properties/each"},
		"a pick": {"$defs/pickObject"}, "find": {"$defs/pickObject/properties/find"}, "a side of compare": {"$defs/side/anyOf/4"},
		"retry": {"$defs/retry"}, "rate_limit": {"$defs/retry/properties/rate_limit"}, "idempotency": {"$defs/idempotency"},
		"fresh": {"$defs/check/properties/fresh"}, "after_call": {"$defs/check/properties/after_call"}, "signed": {"$defs/check/properties/signed"},
	},
	"targets": {
		"the site file": {""}, "a target": {"$defs/target"}, "an entry of a list": {"properties/lists/additionalProperties/additionalProperties"},
		"a key set": {"properties/keys/additionalProperties"}, "an identity of kind bearer": {"$defs/identity/oneOf/0"},
		"an identity of kind header": {"$defs/identity/oneOf/1"}, "an identity of kind basic": {"$defs/identity/oneOf/2"},
		"an identity of kind none": {"$defs/identity/oneOf/3"},
	},
}

// laterOnly are keys that the loader knows only to say that this release does
// not take them.
var laterOnly = append(slices.Concat(sshKeys, sshTargetKeys), "confirm", "exit")

func TestSchemasAndLoaderHaveTheSameKeys(t *testing.T) {
	for name, places := range schemaPlaces {
		taken := map[string]map[string]bool{}
		for _, text := range driftDocs(t, name) {
			readers[name](text, func(what string, keys []string) {
				if taken[what] == nil {
					taken[what] = map[string]bool{}
				}
				for _, k := range keys {
					taken[what][k] = true
				}
			})
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
