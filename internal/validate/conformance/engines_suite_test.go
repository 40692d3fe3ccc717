//go:build conformance

package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	kaptinlin "github.com/kaptinlin/jsonschema"
	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
)

// An engine is one library as its authors give it, with the suite's remote
// schemas at hand: what it does alone, without our guard and our formats.
type engine struct {
	name    string
	compile func(schema json.RawMessage, formats bool) (func(data json.RawMessage) bool, error)
}

// remotes finds the schemas that the suite refers to by URL, in a folder.
type remotes struct{ suite, dialect string }

const (
	suiteHost   = "http://localhost:1234/" // where the suite says that its remotes are
	dialectHost = "https://json-schema.org/draft/2020-12/"
)

func (r remotes) open(url string) (io.ReadCloser, error) {
	if rest, ok := strings.CutPrefix(url, suiteHost); ok {
		return os.Open(filepath.Join(r.suite, rest))
	}
	if rest, ok := strings.CutPrefix(url, dialectHost); ok {
		return os.Open(filepath.Join(r.dialect, rest+".json"))
	}
	return nil, errors.New("nothing is loaded from elsewhere")
}

// Load gives santhosh-tekuri its remotes.
func (r remotes) Load(url string) (any, error) {
	f, err := r.open(url)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return santhosh.UnmarshalJSON(f)
}

func rawEngines(t *testing.T) []engine {
	r := remotes{suite: filepath.Join(schemaSuite.dir(t), "remotes"), dialect: dialectSchemas.dir(t)}
	return []engine{{"santhosh-tekuri", r.santhosh}, {"kaptinlin", r.kaptinlin}}
}

func (r remotes) santhosh(schema json.RawMessage, formats bool) (func(json.RawMessage) bool, error) {
	c := santhosh.NewCompiler()
	c.DefaultDraft(santhosh.Draft2020)
	c.UseLoader(r)
	if formats {
		c.AssertFormat()
	}
	doc, err := santhosh.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	if err := c.AddResource("mem://suite/schema.json", doc); err != nil {
		return nil, err
	}
	s, err := c.Compile("mem://suite/schema.json")
	if err != nil {
		return nil, err
	}
	return func(data json.RawMessage) bool {
		v, err := santhosh.UnmarshalJSON(bytes.NewReader(data))
		return err == nil && s.Validate(v) == nil
	}, nil
}

func (r remotes) kaptinlin(schema json.RawMessage, formats bool) (func(json.RawMessage) bool, error) {
	c := kaptinlin.NewCompiler()
	c.RegisterLoader("http", r.open)
	c.RegisterLoader("https", r.open)
	c.SetAssertFormat(formats)
	s, err := c.Compile(schema)
	if err != nil {
		return nil, err
	}
	return func(data json.RawMessage) bool {
		var v any
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		return d.Decode(&v) == nil && s.Validate(v).IsValid()
	}, nil
}
