package openapi

import (
	"maps"
	"slices"
)

// enter notes the references of a schema, and of what applies beside it, and says
// whether none of them is being followed already.
func (x *shaper) enter(v any) bool {
	m, ok := v.(object)
	if !ok {
		return true
	}
	if ref, isRef := m["$ref"].(string); isRef {
		if slices.Contains(x.open, ref) {
			return false
		}
		x.open = append(x.open, ref)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := m[key].([]any)
		for _, sub := range list[:min(len(list), maxRefs)] {
			if !x.enter(sub) {
				return false
			}
		}
	}
	return true
}

// flatten joins what applies to the same value: allOf, and a choice of which only
// one is not null. null says that null is a value.
func (x *shaper) flatten(m object, at string, depth int) (out object, null, ok bool) {
	if n, _ := m["nullable"].(bool); n {
		null = true
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		list, has := m[key].([]any)
		if !has {
			continue
		}
		one, withNull, single := x.single(list)
		if !single {
			x.o.Leave(at, "it has several shapes ("+key+"); choose one and write it down")
			return nil, false, false
		}
		merged, more, ok := x.flatten(one, at, depth+1)
		if !ok || depth > maxNesting {
			return nil, false, false
		}
		return join(m, merged), null || withNull || more, true
	}
	all, has := m["allOf"].([]any)
	if !has {
		return m, null, true
	}
	out = maps.Clone(m)
	delete(out, "allOf")
	for _, part := range all {
		if x.left--; x.left < 0 || depth > maxNesting {
			x.o.Leave(at, "it is nested too deep, or refers to itself")
			return nil, false, false
		}
		sub, err := x.d.resolve(part)
		if err != nil {
			x.o.Leave(at, err.Error())
			return nil, false, false
		}
		flat, more, ok := x.flatten(sub, at, depth+1)
		if !ok {
			return nil, false, false
		}
		out, null = join(out, flat), null || more
	}
	return out, null, true
}

// single returns the one alternative that is not null.
func (x *shaper) single(list []any) (one object, null, ok bool) {
	for _, v := range list {
		m, err := x.d.resolve(v)
		if err != nil {
			return nil, false, false
		}
		if m["type"] == "null" {
			null = true
			continue
		}
		if one != nil {
			return nil, false, false
		}
		one = m
	}
	return one, null, one != nil
}

// join lays one schema over another: members of both, what either requires.
func join(a, b object) object {
	out := maps.Clone(a)
	for k, v := range b {
		switch k {
		case "properties":
			props := object{}
			for _, from := range []any{a[k], v} {
				if m, ok := from.(object); ok {
					maps.Copy(props, m)
				}
			}
			out[k] = props
		case "required":
			x, _ := a[k].([]any)
			y, _ := v.([]any)
			out[k] = append(slices.Clone(x), y...)
		default:
			if _, has := out[k]; !has {
				out[k] = v
			}
		}
	}
	delete(out, "oneOf")
	delete(out, "anyOf")
	return out
}

// kind is the schema's type, without null; "" where it is open.
func kind(m object) (name string, null bool) {
	switch t := m["type"].(type) {
	case string:
		return t, false
	case []any:
		for _, one := range t {
			if s, _ := one.(string); s == "null" {
				null = true
			} else if name != "" {
				return "", null
			} else {
				name = s
			}
		}
		return name, null
	}
	if m["properties"] != nil {
		return "object", false
	}
	return "", false
}
