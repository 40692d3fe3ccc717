package openapi

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"chatelaine/internal/validate"
)

// Bounds of a description. The largest ones that are published have some ten
// megabytes as JSON; YAML is slower to read and stays smaller.
const (
	MaxBytes  = 32 << 20
	maxYAML   = 8 << 20
	maxDepth  = 100
	maxNodes  = 4_000_000
	maxString = 1 << 20
	maxRefs   = 32 // references in a row
)

// Document is a description that was read.
type Document struct {
	root map[string]any
}

type object = map[string]any

// Parse reads a description in JSON or YAML.
func Parse(b []byte) (*Document, error) {
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("the file has more than %d bytes", MaxBytes)
	}
	if !utf8.Valid(b) {
		return nil, errors.New("the file is not UTF-8")
	}
	var v any
	var err error
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	if trimmed := bytes.TrimLeft(b, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		v, err = parseJSON(b)
	} else if len(b) > maxYAML {
		err = fmt.Errorf("the file has more than %d bytes of YAML; give it as JSON", maxYAML)
	} else {
		v, err = parseYAML(b)
	}
	if err != nil {
		return nil, err
	}
	root, ok := v.(object)
	if !ok {
		return nil, errors.New("the file is no OpenAPI description: it is no mapping")
	}
	version, _ := root["openapi"].(string)
	if !strings.HasPrefix(version, "3.0") && !strings.HasPrefix(version, "3.1") {
		if root["swagger"] != nil {
			return nil, errors.New("the file describes Swagger 2; convert it to OpenAPI 3.0 or 3.1 first")
		}
		return nil, errors.New("the file is no OpenAPI 3.0 or 3.1 description: it has no openapi: 3.0 or 3.1")
	}
	return &Document{root}, nil
}

// parseJSON reads JSON; a text that begins like it and is YAML's flow style is
// read as YAML.
func parseJSON(b []byte) (any, error) {
	v, err := validate.Parse(b, validate.Limits{
		Bytes: MaxBytes, Depth: maxDepth, Nodes: maxNodes, StringBytes: maxString, NameBytes: 1 << 10, NumberDigits: 64, Exponent: 64,
	})
	var pe *validate.ParseError
	if err == nil || !errors.As(err, &pe) {
		return v, err
	}
	if pe.Rule == "syntax" && len(b) <= maxYAML {
		if v, err := parseYAML(b); err == nil {
			return v, nil
		}
	}
	return nil, fmt.Errorf("line %d, column %d: %s", pe.Line, pe.Column, pe.Rule)
}

// resolve follows references within the file. Another file is never opened.
func (d *Document) resolve(v any) (object, error) {
	m, ok := v.(object)
	if !ok {
		return nil, errors.New("a part of the description is missing or has another form than OpenAPI says")
	}
	for range maxRefs {
		ref, isRef := m["$ref"].(string)
		if !isRef {
			return m, nil
		}
		if !strings.HasPrefix(ref, "#/") {
			return nil, fmt.Errorf("the reference %q leads out of the file; put everything into one file first", short(ref))
		}
		next, ok := d.at(ref[2:])
		if !ok {
			return nil, fmt.Errorf("the reference %q leads nowhere", short(ref))
		}
		m = next
	}
	return nil, errors.New("references that lead to each other")
}

func (d *Document) at(pointer string) (object, bool) {
	p, err := validate.ParsePointer("/" + unescape(pointer))
	if err != nil {
		return nil, false
	}
	v, ok := p.Get(d.root)
	m, isMap := v.(object)
	return m, ok && isMap
}

// unescape undoes the escapes of a URI's fragment that descriptions use.
func unescape(s string) string {
	return strings.NewReplacer("%7B", "{", "%7b", "{", "%7D", "}", "%7d", "}", "%20", " ").Replace(s)
}

// short keeps a stranger's text to what fits a message.
func short(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// methods are those that a contract can use, in the order in which they are
// listed.
var methods = []string{"get", "head", "post", "put", "patch", "delete"}

// Listed is one operation, for a list to choose from.
type Listed struct{ ID, Method, Path string }

// place is where an operation stands.
type place struct {
	method, path string
	item, op     object
}

// places finds all operations, sorted by path.
func (d *Document) places() []place {
	var out []place
	paths, _ := d.root["paths"].(object)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item, err := d.resolve(paths[path])
		if err != nil {
			continue // told when it is asked for by its path
		}
		for _, method := range methods {
			if op, ok := item[method].(object); ok {
				out = append(out, place{method, path, item, op})
			}
		}
	}
	return out
}

// Operations lists what can be asked for.
func (d *Document) Operations() []Listed {
	var out []Listed
	for _, p := range d.places() {
		id, _ := p.op["operationId"].(string)
		out = append(out, Listed{id, strings.ToUpper(p.method), p.path})
	}
	return out
}

// find looks an operation up by its id, or by "METHOD /path" where it has none.
func (d *Document) find(id string) (place, error) {
	var found []place
	method, path, byPath := strings.Cut(id, " ")
	for _, p := range d.places() {
		own, _ := p.op["operationId"].(string)
		if own == id && id != "" || byPath && strings.EqualFold(method, p.method) && path == p.path {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return place{}, fmt.Errorf("the description has no operation %q", short(id))
	}
	return place{}, fmt.Errorf("the description has %d operations %q", len(found), short(id))
}
