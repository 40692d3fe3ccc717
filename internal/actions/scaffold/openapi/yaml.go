package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// entryColumns bounds how far to the right a list entry may begin: deeper ones
// would nest deeper than the parser's stack likes.
const entryColumns = 512

// parseYAML reads a description in YAML as a JSON value. It is more tolerant
// than our own files' reader, since strangers write 200: for a key; anchors,
// aliases and tags are refused, so that a small file stays small.
func parseYAML(b []byte) (v any, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, errors.New("the file cannot be read as YAML")
		}
	}()
	tokens := lexer.Tokenize(strings.ReplaceAll(string(b), "\r\n", "\n"))
	if err := checkTokens(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var at *yaml.SyntaxError
		if errors.As(err, &at) && at.Token != nil && at.Token.Position != nil {
			return nil, fmt.Errorf("line %d: the file cannot be read as YAML: %s", at.Token.Position.Line, at.Message)
		}
		return nil, errors.New("the file cannot be read as YAML")
	}
	var body ast.Node
	for _, d := range file.Docs {
		if d.Body == nil {
			continue
		}
		if body != nil {
			return nil, errors.New("the file holds several documents")
		}
		body = d.Body
	}
	if body == nil {
		return nil, errors.New("the file is empty")
	}
	c := converter{left: maxNodes}
	return c.value(body, 1)
}

func checkTokens(tokens token.Tokens) error {
	depth := 0
	for _, t := range tokens {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return fmt.Errorf("line %d: anchors, aliases and merge keys are not followed; write the file out as JSON", t.Position.Line)
		case token.TagType, token.DirectiveType, token.MappingKeyType:
			return fmt.Errorf("line %d: tags, directives and keys written with ? are not taken", t.Position.Line)
		case token.SequenceStartType, token.MappingStartType:
			if depth++; depth > maxDepth {
				return fmt.Errorf("line %d: more than %d levels", t.Position.Line, maxDepth)
			}
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType:
			if t.Position.Column > entryColumns {
				return fmt.Errorf("line %d: a list entry further right than column %d", t.Position.Line, entryColumns)
			}
		}
	}
	return nil
}

// converter makes JSON values of nodes.
type converter struct{ left int }

func (c *converter) value(n ast.Node, depth int) (any, error) {
	if c.left--; c.left < 0 || depth > maxDepth {
		return nil, fmt.Errorf("the file has more than %d values or %d levels", maxNodes, maxDepth)
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return c.mapping(n.Values, depth)
	case *ast.MappingValueNode:
		return c.mapping([]*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		out := make([]any, 0, len(n.Values))
		for _, it := range n.Values {
			v, err := c.value(it, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	}
	return scalar(n.GetToken())
}

func (c *converter) mapping(values []*ast.MappingValueNode, depth int) (any, error) {
	out := object{}
	for _, mv := range values {
		t := mv.Key.GetToken()
		if t == nil {
			return nil, errors.New("a key that cannot be read")
		}
		if _, twice := out[t.Value]; twice {
			return nil, fmt.Errorf("line %d: a key is written twice", t.Position.Line)
		}
		v, err := c.value(mv.Value, depth+1)
		if err != nil {
			return nil, err
		}
		out[t.Value] = v
	}
	return out, nil
}

var jsonNumber = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,2})?$`)

// maxNumber is the characters of a number; longer ones are text to us.
const maxNumber = 64

// scalar reads one scalar by YAML's core schema.
func scalar(t *token.Token) (any, error) {
	if t == nil {
		return nil, nil
	}
	switch t.Type {
	case token.DoubleQuoteType, token.SingleQuoteType:
		return strings.ToValidUTF8(t.Value, "\ufffd"), nil
	case token.ImplicitNullType:
		return nil, nil
	}
	switch s := t.Value; strings.ToLower(s) {
	case "null", "~", "":
		return nil, nil
	case "true", "false":
		return strconv.ParseBool(strings.ToLower(s))
	default:
		if len(s) <= maxNumber && jsonNumber.MatchString(s) {
			return json.Number(s), nil
		}
		return strings.ToValidUTF8(s, "\ufffd"), nil
	}
}
