package validate

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// source is what picks read: the body (or one element of it), the headers, the
// values of the call and the target's host.
type source struct {
	view
	header http.Header
	host   string
}

func (s source) element(e any) source {
	s.view = s.view.element(e)
	return s
}

// pickFault says why a pick gave no value. It holds no byte of the answer.
type pickFault struct {
	rule     string
	where    string // which pick, for the operator
	message  string
	notFound bool // find met no element: the object is not there
}

func refuse(rule, format string, args ...any) *pickFault {
	return &pickFault{rule: rule, message: fmt.Sprintf(format, args...)}
}

// pick is a compiled pick.
type pick struct {
	begin    func(source) (v any, present bool, fault *pickFault)
	convert  []conversion
	optional bool
	null     string
}

// take gives the value; present is false where the member is left out.
func (p pick) take(src source) (v any, present bool, fault *pickFault) {
	v, present, fault = p.begin(src)
	if fault != nil {
		if fault.notFound && p.optional {
			return nil, false, nil
		}
		return nil, false, fault
	}
	if !present {
		if p.optional {
			return nil, false, nil
		}
		return nil, false, refuse("absent", "is not in the answer")
	}
	if v == nil {
		return p.takeNull()
	}
	for _, c := range p.convert {
		var ok bool
		if v, ok = c.apply(v, src); !ok {
			return nil, false, refuse(c.rule, "%s cannot read the value", c.rule)
		}
	}
	return clone(v), true, nil
}

func (p pick) takeNull() (any, bool, *pickFault) {
	switch {
	case p.null == "keep":
		return nil, true, nil
	case p.null == "omit", p.null == "" && p.optional:
		return nil, false, nil
	}
	return nil, false, refuse("null", "is null")
}

// picks is a map of picks, taken in the order of their names.
type picks struct {
	names []string
	by    map[string]pick
}

func (ps picks) take(src source) (map[string]any, *pickFault) {
	out := make(map[string]any, len(ps.names))
	for _, name := range ps.names {
		v, present, fault := ps.by[name].take(src)
		if fault != nil {
			fault.where = strings.TrimSuffix(name+"."+fault.where, ".")
			return nil, fault
		}
		if present {
			out[name] = v
		}
	}
	return out, nil
}

const (
	pickCount = 100    // members of one object of picks
	pickDepth = 4      // each inside each
	eachMax   = 10_000 // elements that one each may give
)

func compilePicks(specs map[string]PickSpec, evidence bool, depth int) (picks, error) {
	out := picks{names: sortedNames(specs), by: map[string]pick{}}
	var errs []error
	if len(specs) > pickCount {
		errs = append(errs, fmt.Errorf("more than %d picks", pickCount))
	}
	if depth > pickDepth {
		return out, fmt.Errorf("each nested deeper than %d", pickDepth)
	}
	for _, name := range out.names {
		p, err := compilePick(specs[name], evidence, depth)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		out.by[name] = p
	}
	return out, errors.Join(errs...)
}

// compilePick compiles one pick. evidence says that it goes into the result,
// where the agent's own words may not stand.
func compilePick(s PickSpec, evidence bool, depth int) (pick, error) {
	if err := checkPick(s, evidence); err != nil {
		return pick{}, err
	}
	begin, err := compileBegin(s, evidence, depth)
	if err != nil {
		return pick{}, err
	}
	return pick{begin: begin, convert: conversions(s), optional: s.Optional, null: s.Null}, nil
}

func checkPick(s PickSpec, evidence bool) error {
	var errs []error
	bad := func(wrong bool, message string) {
		if wrong {
			errs = append(errs, errors.New(message))
		}
	}
	bad(evidence && strings.HasPrefix(s.From, "input."), "from: the caller's own words are no evidence; pick from the answer and compare with a check")
	bad(s.HasOther && !s.HasMap, "other stands only beside map")
	bad(s.HasMap && len(s.Map) == 0, "map is empty")
	bad(!isParsed(s.outputs(), 0), "map and other hold JSON values only")
	if s.HasOther {
		for _, v := range s.Map {
			bad(Equal(v, s.Other), "other equals a value of the map, so the two could not be told apart")
		}
	}
	_, known := timeForms[s.Time]
	bad(s.Time != "" && !known, "time is one of rfc3339, rfc3339_loose, unix_seconds, unix_millis, unix_nanos, http_date")
	bad(s.Null != "" && s.Null != "keep" && s.Null != "omit" && s.Null != "refuse", "null is keep, omit or refuse")
	if s.Matches != "" {
		for _, why := range LintPattern(s.Matches) {
			bad(true, "matches: "+why)
		}
	}
	return errors.Join(errs...)
}

// outputs gives every value that map and other can produce.
func (s PickSpec) outputs() []any {
	return append(slices.Collect(maps.Values(s.Map)), s.Other)
}

type beginner func(source) (any, bool, *pickFault)

func compileBegin(s PickSpec, evidence bool, depth int) (beginner, error) {
	at, err := ParsePointer(s.At)
	if err != nil {
		return nil, err
	}
	switch s.Kind {
	case PickPointer:
		return func(src source) (any, bool, *pickFault) {
			v, ok := src.at(at)
			return v, ok, nil
		}, nil
	case PickFind:
		return compileFind(s.Find, at)
	case PickHeader:
		return compileHeader(s.Header)
	case PickFrom:
		if s.From == "" {
			return nil, errors.New("from is an empty value path")
		}
		return func(src source) (any, bool, *pickFault) {
			v, ok := src.from(s.From)
			return v, ok, nil
		}, nil
	case PickConst:
		if !isParsed(s.Const, 0) {
			return nil, errors.New("const is no JSON value")
		}
		return func(source) (any, bool, *pickFault) { return s.Const, true, nil }, nil
	case PickEach:
		return compileEach(s.Each, evidence, depth)
	}
	return nil, errors.New("a pick begins with a pointer or one of find, at, header, from, const, each")
}

// compileFind finds exactly one element. None is NOT_FOUND, but only where
// every element is known not to be it.
func compileFind(f *FindSpec, at Pointer) (beginner, error) {
	if f == nil {
		return nil, errors.New("find takes {in: POINTER, where: PREDICATE}")
	}
	in, err := ParsePointer(f.In)
	if err != nil {
		return nil, fmt.Errorf("find: %w", err)
	}
	where, err := compilePredicate(f.Where, 0)
	if err != nil {
		return nil, fmt.Errorf("find: %w", err)
	}
	return func(src source) (any, bool, *pickFault) {
		v, ok := src.at(in)
		if !ok {
			return nil, false, nil
		}
		list, ok := v.([]any)
		if !ok {
			return nil, false, refuse("find", "is searched in what is no array")
		}
		hits, doubts := 0, 0
		var hit any
		for _, e := range list {
			switch where(src.view.element(e)) {
			case yes:
				hits, hit = hits+1, e
			case unknown:
				doubts++
			}
		}
		switch {
		case hits == 1:
			v, ok := at.Get(hit)
			return v, ok, nil
		case hits > 1:
			return nil, false, refuse("find-several", "%d elements fit, exactly one must", hits)
		case doubts > 0:
			return nil, false, refuse("find-unknown", "no element fits and %d cannot be told", doubts)
		}
		return nil, false, &pickFault{rule: "find-none", message: "no element fits", notFound: true}
	}, nil
}

func compileHeader(name string) (beginner, error) {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r > 0x7e || !isAlnum(byte(r)) && r != '-' && r != '_' }) {
		return nil, errors.New("header takes the name of one header")
	}
	return func(src source) (any, bool, *pickFault) {
		switch lines := src.header.Values(name); len(lines) {
		case 0:
			return nil, false, nil
		case 1:
			for i := range len(lines[0]) {
				if c := lines[0][i]; c < 0x20 || c > 0x7e {
					return nil, false, refuse("header", "the header holds more than printable ASCII")
				}
			}
			return lines[0], true, nil
		}
		return nil, false, refuse("header", "the header must stand exactly once")
	}, nil
}

func compileEach(e *EachSpec, evidence bool, depth int) (beginner, error) {
	if e == nil || e.Max < 1 || e.Max > eachMax || len(e.Pick) == 0 {
		return nil, fmt.Errorf("each takes in, max (1 to %d) and pick with one member or more", eachMax)
	}
	in, err := ParsePointer(e.In)
	if err != nil {
		return nil, fmt.Errorf("each: %w", err)
	}
	ps, err := compilePicks(e.Pick, evidence, depth+1)
	if err != nil {
		return nil, fmt.Errorf("each: %w", err)
	}
	return func(src source) (any, bool, *pickFault) {
		v, ok := src.at(in)
		if !ok || v == nil {
			return nil, ok, nil
		}
		list, ok := v.([]any)
		if !ok {
			return nil, false, refuse("each", "is no array")
		}
		if len(list) > e.Max {
			return nil, false, refuse("each", "has %d elements, may have at most %d", len(list), e.Max)
		}
		out := make([]any, len(list))
		for i, item := range list {
			o, fault := ps.take(src.element(item))
			if fault != nil {
				fault.where = fmt.Sprintf("%d.%s", i, fault.where)
				return nil, false, fault
			}
			out[i] = o
		}
		return out, true, nil
	}, nil
}
