package actions

import (
	"slices"
	"strings"
)

// suspectWords promise a place, an identity or a program, but name everyday
// facts too. Free text under one of them is remarked on; the words of
// forbiddenInputWords are refused outright.
var suspectWords = []string{
	"server", "address", "addr", "ip", "port", "domain", "socket", "upstream", "destination", "redirect", "callback",
	"webhook", "href", "link", "password", "passwd", "secret", "apikey", "auth", "authorization", "cookie", "identity",
	"impersonate", "sudo", "role", "privilege", "shell", "exec", "eval", "program", "binary", "sql", "jql", "template",
	"expression", "options", "opts", "params", "arg", "argument", "argv",
}

// suspectNames remarks on free inputs that are called like an authority.
func (l *linter) suspectNames() {
	view := schemaView{root: l.c.inputDoc}
	names := view.names()
	for _, ptr := range sortedKeys(names) {
		w := suspectWord(names[ptr])
		if w == "" || authorsOwn(view, schemaAt(view.root, ptr)) || slices.Contains(l.c.route.by, names[ptr]) {
			continue
		}
		l.say("input-suspect-name", l.at("input", ptr), "give it an enum, or call it after what it means to the task",
			"the input %q holds any text that fits, under the word %q", names[ptr], w)
	}
}

func suspectWord(name string) string {
	ws := words(name)
	for i, w := range ws {
		one := strings.TrimSuffix(w, "s")
		if i+1 < len(ws) && w == "api" && strings.HasPrefix(ws[i+1], "key") {
			return "apikey"
		}
		if slices.Contains(suspectWords, w) || slices.Contains(suspectWords, one) {
			return w
		}
	}
	return ""
}

// authorsOwn says whether a value is one of the author's own, or an object or a
// list whose parts are looked at by themselves.
func authorsOwn(v schemaView, s map[string]any) bool {
	s = v.resolve(s)
	if s["enum"] != nil || s["const"] != nil {
		return true
	}
	switch schemaKind(s) {
	case kindBool, kindNull, kindObject:
		return true
	case kindList:
		return authorsOwn(v, v.items(s))
	}
	return false
}

// schemaAt follows a JSON pointer to a schema.
func schemaAt(root map[string]any, pointer string) map[string]any {
	var x any = root
	for _, tok := range pointerTokens(pointer) {
		switch c := x.(type) {
		case map[string]any:
			x = c[tok]
		case []any:
			i := indexOf(tok)
			if i < 0 || i >= len(c) {
				return nil
			}
			x = c[i]
		default:
			return nil
		}
	}
	s, _ := x.(map[string]any)
	return s
}

func pointerTokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	toks := strings.Split(pointer[1:], "/")
	for i, t := range toks {
		toks[i] = unescapePointer.Replace(t)
	}
	return toks
}

// indexOf reads an index of a list, -1 for any other text.
func indexOf(tok string) int {
	n := 0
	for _, r := range tok {
		if r < '0' || r > '9' || n > 1<<20 {
			return -1
		}
		n = n*10 + int(r-'0')
	}
	if tok == "" {
		return -1
	}
	return n
}

// namedMembers remarks on inputs whose members the agent names: wherever they
// are placed, the agent chooses which member it writes.
func (l *linter) namedMembers() {
	eachSchema(l.c.inputDoc, "", func(s map[string]any, ptr string) {
		if s["patternProperties"] != nil {
			l.say("input-names-members", l.at("input", ptr+"/patternProperties"), "take a list of objects with a name and a value",
				"the agent names the members of this input")
		}
	})
}

// eachSchema walks every place where a schema stands, parents first.
func eachSchema(x any, ptr string, f func(s map[string]any, ptr string)) {
	s, ok := x.(map[string]any)
	if !ok {
		return
	}
	f(s, ptr)
	for _, key := range sortedKeys(s) {
		here := ptr + "/" + escapePointer(key)
		switch key {
		case "properties", "patternProperties", "$defs", "dependentSchemas":
			m, _ := s[key].(map[string]any)
			for _, name := range sortedKeys(m) {
				eachSchema(m[name], here+"/"+escapePointer(name), f)
			}
		case "allOf", "anyOf", "oneOf", "prefixItems":
			list, _ := s[key].([]any)
			for i, sub := range list {
				eachSchema(sub, here+"/"+itoa(i), f)
			}
		case "not", "if", "then", "else", "items", "contains", "additionalProperties", "unevaluatedProperties", "propertyNames":
			eachSchema(s[key], here, f)
		}
	}
}
