package slips

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

func TestOf(t *testing.T) {
	doc := map[string]any{"a": "x", "b": []any{json.Number("1")}}
	before := map[string]any{"a": "x", "b": []any{json.Number("1")}}
	var got []string
	for _, s := range Of(doc, All) {
		if !json.Valid([]byte(s.JSON)) {
			t.Errorf("%s: %s", s.At, s.JSON)
		}
		got = append(got, s.JSON)
	}
	for _, want := range []string{
		`{"b":[1]}`, `{"az":"x","b":[1]}`, `{"a":"x","b":[1],"zzz":"zzz"}`, `{"a":"xz","b":[1]}`, `{"a":null,"b":[1]}`,
		`{"a":"x","b":[null]}`, `{"a":"x","b":{}}`, `{"a":7,"b":[1]}`,
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s was not made", want)
		}
	}
	if !reflect.DeepEqual(doc, before) {
		t.Errorf("the document is now %v", doc)
	}
	if few := Of(doc, 2); len(few) >= len(got) || len(few) == 0 {
		t.Errorf("%d slips of %d", len(few), len(got))
	}
	all := Of(doc, All)
	if some := Some(all, len(all)/3); len(some) > len(all)/3+2 || !slices.Contains(some, Slip{" with zzz", `{"a":"x","b":[1],"zzz":"zzz"}`}) {
		t.Errorf("%d of %d slips, or no key too many among them", len(some), len(all))
	}
	if len(wrong) != All {
		t.Errorf("All is %d, there are %d wrong values", All, len(wrong))
	}
}
