package main

import (
	"bytes"
	"cmp"
	"encoding/json/jsontext"
	"errors"
	"maps"
	"slices"
)

// memberRows are the members of a JSON object, in their order, one a row;
// anything but an object is one row without a label.
func memberRows(v jsontext.Value) ([]row, error) {
	if v.Kind() != '{' {
		return []row{{c(compact(v))}}, nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(v))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	var rows []row
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		val, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{cc(dimmed, key), c(compact(val))})
	}
	if d.PeekKind() != '}' {
		return nil, errors.New("the object does not end")
	}
	return rows, nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
