package strictyaml

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	yaml "github.com/goccy/go-yaml"
)

// Limits bound a file before and while it is read. A field that is zero takes
// the default.
type Limits struct {
	Bytes int // of the file
	Depth int // of lists and mappings inside each other
	Nodes int // values and keys
}

// The defaults fit a long contract several times over; beyond them a file is a
// mistake or an attack on the reader.
const (
	defaultBytes = 256 << 10
	defaultDepth = 40
	defaultNodes = 20000
	// entryColumns bounds how far to the right a list entry may begin, so that
	// "- - - -" cannot nest deeper than the parser's stack likes.
	entryColumns = 512
)

func (l Limits) orDefault() Limits {
	if l.Bytes == 0 {
		l.Bytes = defaultBytes
	}
	if l.Depth == 0 {
		l.Depth = defaultDepth
	}
	if l.Nodes == 0 {
		l.Nodes = defaultNodes
	}
	return l
}

// File is one file that was read: its root and everything found wrong with it,
// by the reader and by whoever decodes it.
type File struct {
	name     string
	lines    []string
	root     *Node
	limits   Limits
	nodes    int
	problems Problems
	watch    func(what string, keys []string) // nil: nobody looks
}

// Parse reads data, which came from the file called name. The result is never
// nil; Root is nil where nothing could be read.
func Parse(name string, data []byte, l Limits) *File {
	f := &File{name: name, limits: l.orDefault()}
	if len(data) > f.limits.Bytes {
		f.ReportFile("size", "", "the file has more than %d bytes", f.limits.Bytes)
		return f
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	f.lines = strings.Split(text, "\n")
	if f.plainText(text) {
		f.parse(text)
	}
	if f.root == nil || f.root.Kind != Mapping {
		f.QuoteNothing()
	}
	return f
}

// QuoteNothing takes the file's own words out of what is reported about it, now
// and later. A file that is no mapping is none of those read here: it may be a
// key that somebody named by mistake, and a problem is printed and kept in logs.
func (f *File) QuoteNothing() {
	f.lines = nil
	for i := range f.problems {
		p := &f.problems[i]
		p.Excerpt = ""
		if p.Rule == "number" || p.Rule == "scalar" {
			p.Message = "a value in a spelling that JSON does not have"
		}
	}
}

// plainText refuses what no file of ours holds: a byte order mark, bytes that
// are not UTF-8, tabs and other control characters.
func (f *File) plainText(text string) bool {
	if strings.HasPrefix(text, "\ufeff") {
		f.Report(Pos{1, 1}, "encoding", "save the file as UTF-8 without a byte order mark", "the file begins with a byte order mark")
		return false
	}
	for i, line := range f.lines {
		if !utf8.ValidString(line) {
			f.Report(Pos{i + 1, 1}, "encoding", "save the file as UTF-8", "the line is not valid UTF-8")
			continue
		}
		column := 0
		for _, r := range line {
			column++
			switch {
			case r == '\t':
				f.Report(Pos{i + 1, column}, "tab", "use spaces; inside a text write \"\\t\"", "a tab")
			case r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029:
				f.Report(Pos{i + 1, column}, "control", "write it as an escape inside double quotes", "a control character (U+%04X)", r)
			default:
				continue
			}
			break
		}
	}
	return len(f.problems) == 0
}

// parse turns text into nodes. The parser is a large one; should it panic on
// some file, that file is refused.
func (f *File) parse(text string) {
	defer func() {
		if r := recover(); r != nil {
			f.root = nil
			f.ReportFile("syntax", "", "the file cannot be read as YAML")
		}
	}()
	tokens := lexer.Tokenize(text)
	if !f.checkTokens(tokens) {
		return
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		f.syntax(err)
		return
	}
	var body ast.Node
	for _, d := range file.Docs {
		if d.Body == nil {
			continue
		}
		if body != nil {
			f.Report(posOf(d.Body.GetToken()), "document", "keep one document in a file", "a second document")
			return
		}
		body = d.Body
	}
	if body == nil {
		f.ReportFile("empty", "", "the file holds no value")
		return
	}
	f.root = f.convert(body, 1)
}

// syntax places the parser's own complaint. Its text speaks of tokens and
// contexts, never of more than the file itself.
func (f *File) syntax(err error) {
	var se *yaml.SyntaxError
	if errors.As(err, &se) && se.Token != nil {
		f.Report(posOf(se.Token), "syntax", "look at the indentation, the quotes and the brackets around this place", "%s", se.Message)
		return
	}
	f.ReportFile("syntax", "", "the file cannot be read as YAML")
}

func posOf(t *token.Token) Pos {
	if t == nil || t.Position == nil {
		return Pos{1, 1}
	}
	return Pos{t.Position.Line, max(t.Position.Column, 1)}
}

// checkTokens refuses the parts of YAML that no file of ours may use, all of
// them at once, and nesting that the parser should not be asked to follow.
func (f *File) checkTokens(tokens token.Tokens) bool {
	before := len(f.problems)
	depth, content := 0, false
	for _, t := range tokens {
		at := posOf(t)
		switch t.Type {
		case token.AnchorType:
			f.Report(at, "anchor", "write the value out where it is needed; a text that begins with & wants quotes", "an anchor")
		case token.AliasType:
			f.Report(at, "alias", "write the value out; a text that begins with * wants quotes", "an alias")
		case token.MergeKeyType:
			f.Report(at, "merge-key", "write the members out", "a merge key")
		case token.TagType:
			f.Report(at, "tag", "a text that begins with ! wants quotes", "a tag")
		case token.DirectiveType:
			f.Report(at, "directive", "take the line away", "a directive")
		case token.MappingKeyType:
			f.Report(at, "key", "write KEY: VALUE", "a key written with ?")
		case token.DocumentEndType:
			f.Report(at, "document", "take the line away", "an end-of-document mark")
		case token.DocumentHeaderType:
			if content {
				f.Report(at, "document", "keep one document in a file", "a second document")
			}
		case token.SequenceStartType, token.MappingStartType:
			if depth++; depth == f.limits.Depth+1 {
				f.Report(at, "depth", "", "more than %d levels", f.limits.Depth)
			}
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType:
			if at.Column > entryColumns {
				f.Report(at, "depth", "", "a list entry further right than column %d", entryColumns)
			}
		}
		content = content || t.Type != token.CommentType
	}
	return len(f.problems) == before
}

// convert builds our node. It returns nil after reporting what it cannot take.
func (f *File) convert(n ast.Node, depth int) *Node {
	at := placeOf(n)
	if f.nodes++; f.nodes == f.limits.Nodes+1 {
		f.Report(at, "nodes", "", "more than %d values", f.limits.Nodes)
	}
	if f.nodes > f.limits.Nodes {
		return nil
	}
	if depth > f.limits.Depth {
		f.Report(at, "depth", "", "more than %d levels", f.limits.Depth)
		return nil
	}
	switch v := n.(type) {
	case *ast.MappingNode:
		return f.mapping(at, v.Values, depth)
	case *ast.MappingValueNode:
		return f.mapping(at, []*ast.MappingValueNode{v}, depth)
	case *ast.SequenceNode:
		out := &Node{Kind: Sequence, Pos: at, Items: make([]*Node, 0, len(v.Values))}
		for _, it := range v.Values {
			if c := f.convert(it, depth+1); c != nil {
				out.Items = append(out.Items, c)
			}
		}
		return out
	case *ast.LiteralNode:
		return &Node{Kind: String, Pos: at, Text: v.Value.Value}
	}
	if c, ok := f.scalarOf(n.GetToken()); ok {
		return &c
	}
	return nil
}

// placeOf is where a node begins: the parser gives a block mapping the place of
// its first colon, and people look for the key.
func placeOf(n ast.Node) Pos {
	var first ast.MapKeyNode
	switch v := n.(type) {
	case *ast.MappingNode:
		if !v.IsFlowStyle && len(v.Values) > 0 {
			first = v.Values[0].Key
		}
	case *ast.MappingValueNode:
		first = v.Key
	}
	if first != nil {
		return posOf(first.GetToken())
	}
	return posOf(n.GetToken())
}

func (f *File) mapping(at Pos, values []*ast.MappingValueNode, depth int) *Node {
	out := &Node{Kind: Mapping, Pos: at, Members: make([]Member, 0, len(values))}
	seen := map[string]Pos{}
	for _, mv := range values {
		key, pos, ok := f.key(mv.Key)
		if ok {
			if first, twice := seen[key]; twice {
				f.Report(pos, "duplicate-key", fmt.Sprintf("it stands already in line %d", first.Line), "the key %q is written twice", key)
				ok = false
			} else {
				seen[key] = pos
			}
		}
		value := f.convert(mv.Value, depth+1)
		if ok && value == nil {
			out.broken = append(out.broken, key)
		}
		if ok && value != nil {
			out.Members = append(out.Members, Member{Key: key, KeyPos: pos, Value: value})
		}
	}
	return out
}

func (f *File) key(k ast.MapKeyNode) (string, Pos, bool) {
	t := k.GetToken()
	at := posOf(t)
	if t != nil && t.Type == token.NullType && t.Value == "null" {
		return t.Value, at, true // a pick has a key of that name
	}
	n, ok := f.scalarOf(t)
	if !ok {
		return "", at, false
	}
	if n.Kind != String {
		f.Report(at, "key", "put it in quotes", "a key that is no text")
		return "", at, false
	}
	return n.Text, at, true
}

var (
	jsonNumber = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$`)
	// otherNumber is what some reader of YAML takes for a number.
	otherNumber = regexp.MustCompile(`^[-+]?(?:0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))$|^\.(?:nan|NaN|NAN)$`)
)

// scalarOf reads one scalar by the JSON core schema; the parser's own opinion
// of plain words is not asked. false means that what it cannot take was reported.
func (f *File) scalarOf(t *token.Token) (Node, bool) {
	at := posOf(t)
	if t == nil {
		f.Report(at, "syntax", "", "a value that cannot be read")
		return Node{}, false
	}
	switch t.Type {
	case token.DoubleQuoteType:
		if strings.ContainsRune(t.Value, utf8.RuneError) {
			f.Report(at, "escape", "write the character itself, or both halves of a pair", "a broken escape")
			return Node{}, false
		}
		return Node{Kind: String, Pos: at, Text: t.Value}, true
	case token.SingleQuoteType:
		return Node{Kind: String, Pos: at, Text: t.Value}, true
	case token.ImplicitNullType:
		f.Report(at, "missing-value", "write the value, null or \"\"", "a value is missing")
		return Node{}, false
	}
	return f.plain(at, t)
}

func (f *File) plain(at Pos, t *token.Token) (Node, bool) {
	s := t.Value
	switch s {
	case "null":
		if strings.TrimSpace(t.Origin) != "null" {
			f.Report(at, "missing-value", "write the value, null or \"\"", "a value is missing")
			return Node{}, false
		}
		return Node{Kind: Null, Pos: at}, true
	case "true", "false":
		return Node{Kind: Bool, Pos: at, Truth: s == "true"}, true
	case "~", "Null", "NULL", "True", "TRUE", "False", "FALSE":
		f.Report(at, "scalar", "write null, true or false; a text wants quotes", "%s is a spelling that JSON does not have", s)
		return Node{}, false
	case "":
		f.Report(at, "missing-value", "write the value, null or \"\"", "a value is missing")
		return Node{}, false
	}
	mayBeNumber := strings.IndexByte("0123456789+-.", s[0]) >= 0 // spares most texts two patterns
	if mayBeNumber && jsonNumber.MatchString(s) {
		return Node{Kind: Number, Pos: at, Text: s}, true
	}
	if mayBeNumber && otherNumber.MatchString(s) {
		f.Report(at, "number", "write it as JSON does, or in quotes where it is a text", "%s is a number in a spelling that JSON does not have", s)
		return Node{}, false
	}
	if t.Type == token.StringType {
		return Node{Kind: String, Pos: at, Text: s, Plain: true}, true
	}
	f.Report(at, "scalar", "put a text in quotes", "a value that cannot be read")
	return Node{}, false
}
