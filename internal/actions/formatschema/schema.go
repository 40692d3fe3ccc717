// Package formatschema holds the JSON Schemas (2020-12) of the files that people
// write: contract.yaml, targets.yaml and fixtures, for editors that complete,
// explain and check. The loader decides what is taken; these only say the same
// where a schema can say it, and tests of internal/actions and
// internal/contracttest hold the two together. It must never read a file or be
// asked whether a contract is good. cmd/chatelaine prints the schemas; it
// imports nothing of ours.
package formatschema

import (
	"bytes"
	_ "embed" // the schemas lie beside this file
	"encoding/json/jsontext"
	"slices"
)

// takesLater publishes the parts that are marked x-later: what belongs to the
// format and is refused by this release's loader (steps over SSH, confirm). It
// becomes true in the release whose loader takes them.
const takesLater = false

//go:embed contract.json
var contractSource []byte

//go:embed targets.json
var targetsSource []byte

//go:embed fixture.json
var fixtureSource []byte

// Document is one published schema.
type Document struct {
	Name  string // "contract", "targets" or "fixture"
	File  string // the file's name where all are written into a folder
	Of    string // the files that it describes
	bytes []byte
}

// JSON returns the schema, indented, with a newline at its end.
func (d Document) JSON() []byte { return bytes.Clone(d.bytes) }

// Documents returns the schemas in the order in which they are listed.
func Documents() []Document {
	return []Document{
		{"contract", "contract.schema.json", "contracts/ACTION/contract.yaml", mustPublish(contractSource)},
		{"targets", "targets.schema.json", "targets.yaml", mustPublish(targetsSource)},
		{"fixture", "fixture.schema.json", "contracts/ACTION/fixtures/*.yaml", mustPublish(fixtureSource)},
	}
}

// Named returns one schema, false for a name that is none.
func Named(name string) (Document, bool) {
	all := Documents()
	i := slices.IndexFunc(all, func(d Document) bool { return d.Name == name })
	if i < 0 {
		return Document{}, false
	}
	return all[i], true
}

// mustPublish panics on a source that is no JSON: it is part of the program.
func mustPublish(source []byte) []byte {
	b, err := publish(source, takesLater)
	if err != nil {
		panic("formatschema: " + err.Error())
	}
	return b
}

// publish takes the marks away, and with later false the marked parts too. The
// order of the members stays: editors show them in it.
func publish(source []byte, later bool) ([]byte, error) {
	v, _, err := prune(jsontext.NewDecoder(bytes.NewReader(source)), later)
	if err != nil {
		return nil, err
	}
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, err
	}
	return append(v, '\n'), nil
}

// marker stands in an object that a later release takes.
const marker = "x-later"

// prune reads one value; gone says that it belongs to a later release.
func prune(d *jsontext.Decoder, later bool) (v jsontext.Value, gone bool, err error) {
	switch d.PeekKind() {
	case '{':
		return pruneObject(d, later)
	case '[':
		v, _, err := pruneArray(d, later)
		return v, false, err
	}
	v, err = d.ReadValue()
	return v.Clone(), false, err
}

func pruneArray(d *jsontext.Decoder, later bool) (v jsontext.Value, cut bool, err error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, false, err
	}
	var parts []jsontext.Value
	for d.PeekKind() != ']' {
		item, gone, err := prune(d, later)
		if err != nil {
			return nil, false, err
		}
		if cut = cut || gone; !gone {
			parts = append(parts, item)
		}
	}
	_, err = d.ReadToken()
	return jsontext.Value("[" + string(bytes.Join(asBytes(parts), []byte(","))) + "]"), cut, err
}

func pruneObject(d *jsontext.Decoder, later bool) (v jsontext.Value, gone bool, err error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, false, err
	}
	var parts []jsontext.Value
	for d.PeekKind() != '}' {
		name, err := d.ReadValue()
		if err != nil {
			return nil, false, err
		}
		name = name.Clone()
		if string(name) == `"`+marker+`"` {
			gone = !later
			if err := d.SkipValue(); err != nil {
				return nil, false, err
			}
			continue
		}
		member, cut, err := prune(d, later)
		if err != nil {
			return nil, false, err
		}
		if !cut {
			parts = append(parts, jsontext.Value(string(name)+":"+string(member)))
		}
	}
	_, err = d.ReadToken()
	return jsontext.Value("{" + string(bytes.Join(asBytes(parts), []byte(","))) + "}"), gone, err
}

func asBytes(parts []jsontext.Value) [][]byte {
	out := make([][]byte, len(parts))
	for i, p := range parts {
		out[i] = p
	}
	return out
}
