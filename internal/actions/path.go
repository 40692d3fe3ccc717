package actions

import (
	"encoding/json"
	"regexp"
	"regexp/syntax"
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// pathTemplate is a request path whose segments are constants and placeholders.
// Nothing that a caller says is escaped into it: what does not fit is refused.
type pathTemplate struct {
	text     string
	pos      strictyaml.Pos
	segments [][]pathPart
}

// pathPart is a constant or a placeholder of one segment.
type pathPart struct {
	lit  string
	path string // input.x, target.x, call.x, LOOKUP.x, request.x
	mode byte   // 's' one segment, '/' several, '%' one with %2F
}

var (
	placeholder = regexp.MustCompile(`^[a-z_][a-z0-9_]*(?:\.[A-Za-z0-9_-]+)+$`)
	// segmentText is what a URL's path may hold without an escape, less ";",
	// which some servers take for the end of a name.
	segmentText = regexp.MustCompile(`^[A-Za-z0-9._~!$&'()*+,=:@-]*$`)
)

// parsePath reads a template.
func (d *draft) parsePath(n *strictyaml.Node) *pathTemplate {
	text, ok := d.f.Text(n, "path")
	if !ok {
		return nil
	}
	before := d.f.Count()
	t := &pathTemplate{text: text, pos: n.Pos}
	if !strings.HasPrefix(text, "/") {
		d.bad(n.Pos, "path", "", "a path begins with /")
		return nil
	}
	parts := strings.Split(text[1:], "/")
	for i, seg := range parts {
		if seg == "" && !(i == len(parts)-1) {
			d.bad(n.Pos, "path", "", "a path has no empty segment")
			continue
		}
		t.segments = append(t.segments, d.segment(n, seg, i > 0 && operatorsOwn(parts[0])))
	}
	if d.f.Count() > before {
		return nil
	}
	return t
}

// operatorsOwn says whether nothing in a segment comes with a call: it is
// written out, or a constant of the target.
func operatorsOwn(seg string) bool {
	for _, m := range sentencePath.FindAllStringSubmatch(seg, -1) {
		if !strings.HasPrefix(m[1], "target.") {
			return false
		}
	}
	return true
}

// segment reads one segment; inFolder says that the template begins with a
// constant folder before it.
func (d *draft) segment(n *strictyaml.Node, seg string, inFolder bool) []pathPart {
	var out []pathPart
	rest := seg
	for rest != "" {
		lit, after, open := strings.Cut(rest, "{")
		if lit != "" {
			if !segmentText.MatchString(lit) {
				d.bad(n.Pos, "path", "write letters, digits and - . _ ~; other text belongs to a constant of the target", "the path holds a character that a path cannot have as it is")
			}
			out = append(out, pathPart{lit: lit})
		}
		if !open {
			break
		}
		inside, tail, closed := strings.Cut(after, "}")
		if !closed {
			d.bad(n.Pos, "path", "", "a placeholder has no end")
			return nil
		}
		if p, ok := d.placeholder(n, inside, inFolder, seg == "{"+inside+"}"); ok {
			out = append(out, p)
		}
		rest = tail
	}
	if seg == "." || seg == ".." {
		d.bad(n.Pos, "path", "", "a path has no segment . or ..")
	}
	return out
}

func (d *draft) placeholder(n *strictyaml.Node, inside string, inFolder, whole bool) (pathPart, bool) {
	p := pathPart{path: inside, mode: 's'}
	if s, ok := strings.CutSuffix(inside, "..."); ok {
		p.path, p.mode = s, '/'
	} else if s, ok := strings.CutSuffix(inside, "%"); ok {
		p.path, p.mode = s, '%'
	}
	if !placeholder.MatchString(p.path) {
		d.bad(n.Pos, "path", "such as {input.name}, {target.name...} or {target.name%}", "{%s} is no placeholder", inside)
		return p, false
	}
	if p.mode == '/' && !whole {
		d.bad(n.Pos, "path", "", "{%s} must fill its segment alone", inside)
		return p, false
	}
	root, rest, _ := strings.Cut(p.path, ".")
	switch root {
	case "input":
		return p, d.pathInput(n, p, rest, inFolder)
	case "target":
		d.uses = append(d.uses, targetUse{path: rest, want: kindScalar, mode: p.mode, pos: n.Pos})
		return p, true
	case "call":
		if p.mode == 's' && (p.path == "call.id" || p.path == "call.idempotency_key") {
			return p, true
		}
	default:
		if _, ok := d.gatheredBy(root); ok {
			return p, d.pathCaptured(n, p, root, rest, inFolder)
		}
	}
	if !d.path(n.Pos, p.path, kindAny, false, nil) {
		return p, false
	}
	d.bad(n.Pos, "path", "", "{%s} cannot stand in a path", inside)
	return p, false
}

// pathInput holds an input in a path to an enum, a bounded whole number or an
// anchored pattern over letters, digits, dot, underscore and hyphen.
func (d *draft) pathInput(n *strictyaml.Node, p pathPart, rest string, inFolder bool) bool {
	if !d.inputPath(n.Pos, rest, kindScalar, false) {
		return false
	}
	s, _, _ := d.in.property(d.in.root, rest)
	return d.pathShape(n, p, s, inFolder, d.isListInput(rest))
}

// pathCaptured holds a captured value to the rule for inputs; it never brings
// its own slashes.
func (d *draft) pathCaptured(n *strictyaml.Node, p pathPart, root, rest string, inFolder bool) bool {
	if p.mode == '/' {
		d.bad(n.Pos, "path", "write {"+p.path+"} or {"+p.path+"%}", "{%s...} would let an answer choose folders", p.path)
		return false
	}
	if !d.capturedPath(n.Pos, root, rest, kindScalar, false) {
		return false
	}
	shapes, _, _ := d.captured[root].look(rest)
	for _, s := range shapes {
		if !d.pathShape(n, p, s, inFolder, false) {
			return false
		}
	}
	return true
}

// pathShape holds a value in a path to its schema. listed says that the
// operator's list will give it an enum.
func (d *draft) pathShape(n *strictyaml.Node, p pathPart, s map[string]any, inFolder, listed bool) bool {
	slash := p.mode != 's'
	const hint = "give it an enum, or an anchored pattern over [A-Za-z0-9._-]"
	if slash && schemaKind(s) == kindText && !inFolder && !beginsWithFolder(s) {
		d.bad(n.Pos, "path-folder", "begin the template or the value's pattern with a constant folder", "%s may hold / and stands in no constant folder", p.path)
		return false
	}
	if vs, closed := closedSet(s); closed {
		return d.pathEnum(n, p, vs)
	}
	switch schemaKind(s) {
	case kindNumber:
		low, hasLow := s["minimum"].(json.Number)
		_, hasHigh := s["maximum"].(json.Number)
		if s["type"] != "integer" || !hasLow || !hasHigh || strings.HasPrefix(string(low), "-") {
			d.bad(n.Pos, "path-input", "give it type: integer with minimum (0 or more) and maximum", "%s is no bounded whole number", p.path)
			return false
		}
		return true
	case kindText:
		pattern, _ := s["pattern"].(string)
		if pattern != "" && overAlphabet(pattern, pathRune(slash)) {
			return true
		}
		if pattern == "" && listed {
			return true // the list's names become its enum
		}
		d.bad(n.Pos, "path-input", hint, "%s in a path may hold more than a path's name", p.path)
		return false
	}
	d.bad(n.Pos, "path-input", hint, "%s cannot stand in a path", p.path)
	return false
}

func (d *draft) pathEnum(n *strictyaml.Node, p pathPart, values []any) bool {
	for _, v := range values {
		if _, err := pathValue(v, p.mode); err != nil {
			d.bad(n.Pos, "path-input", "", "%s has a value that cannot stand in a path", p.path)
			return false
		}
	}
	return true
}

// beginsWithFolder says whether an input's pattern begins with a constant
// folder, or its enum's values all stand in one.
func beginsWithFolder(s map[string]any) bool {
	if _, closed := closedSet(s); closed {
		return true // every value was written by the author
	}
	pattern, _ := s["pattern"].(string)
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || re.Op != syntax.OpConcat || re.Sub[0].Op != syntax.OpBeginText {
		return false
	}
	// What is written out there: in docs/? and docs/{0,1} the / is no part of it.
	first := re.Sub[1]
	if first.Op != syntax.OpLiteral || first.Flags&syntax.FoldCase != 0 {
		return false
	}
	folder, _, ok := strings.Cut(string(first.Rune), "/")
	return ok && constantFolder.MatchString(folder)
}

var constantFolder = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func pathRune(slash bool) func(rune) bool {
	return func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			r == '.' || r == '_' || r == '-' || slash && r == '/'
	}
}

// overAlphabet says whether an anchored pattern matches only texts made of the
// allowed characters.
func overAlphabet(pattern string, allowed func(rune) bool) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || re.Op != syntax.OpConcat || len(re.Sub) < 2 {
		return false
	}
	last := len(re.Sub) - 1
	if re.Sub[0].Op != syntax.OpBeginText || re.Sub[last].Op != syntax.OpEndText {
		return false
	}
	for _, sub := range re.Sub[1:last] {
		if !onlyRunes(sub, allowed) {
			return false
		}
	}
	return true
}

// onlyRunes is overAlphabet without the anchors.
func onlyRunes(re *syntax.Regexp, allowed func(rune) bool) bool {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return true
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if !allowed(r) {
				return false
			}
		}
		return re.Flags&syntax.FoldCase == 0
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			if re.Rune[i+1] > 0x7f {
				return false
			}
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if !allowed(r) {
					return false
				}
			}
		}
		return true
	case syntax.OpCapture, syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat, syntax.OpConcat, syntax.OpAlternate:
		for _, sub := range re.Sub {
			if !onlyRunes(sub, allowed) {
				return false
			}
		}
		return true
	}
	return false
}
