package actions

import (
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// suspectWords promise a place, an identity or a program, but name everyday
// facts too. Free text under one of them is remarked on; the words of
// forbiddenInputWords are refused outright.
var suspectWords = []string{
	"server", "address", "addr", "ip", "port", "domain", "socket", "upstream", "destination", "redirect", "callback",
	"webhook", "href", "link", "password", "passwd", "secret", "apikey", "auth", "authorization", "cookie", "identity",
	"impersonate", "sudo", "role", "privilege", "shell", "exec", "eval", "program", "binary", "sql", "jql", "template",
	"expression", "options", "opts", "params", "arg", "argument", "argv", "namespace", "tenant", "cluster", "recipient",
}

// suspectInputs promise an identity as an input's own name. Where something is
// sent, most services have such a member for people that a call is about.
var suspectInputs = []string{"user", "username"}

// suspectMembers are further names, or parts of names, that promise an identity
// where something is sent.
var suspectMembers = []string{"behalf", "actor", "run as", "act as", "as user"}

// suspectPlaces remarks on free inputs that are sent under the name of an
// authority, whatever the contract calls them.
func (l *linter) suspectPlaces() {
	for _, st := range l.c.allSteps() {
		for _, m := range st.query {
			l.suspectPlace(m)
		}
		l.suspectValue(st.body)
	}
}

func (l *linter) suspectPlace(m valueMember) {
	l.suspectValue(m.node)
	w := suspectMember(m.name)
	if w == "" {
		return
	}
	view := schemaView{root: l.c.inputDoc}
	used := map[string]strictyaml.Pos{}
	m.node.inputPlaces(used)
	for _, name := range sortedKeys(used) {
		s, _, _ := view.property(view.root, name)
		if s == nil || authorsOwn(view, s) || suspectInput(name) != "" || slices.Contains(l.c.route.by, name) {
			continue // one of the author's own values, or told where it is declared
		}
		l.say("input-suspect-name", m.pos, "give the input an enum, or write a constant",
			"the input %q holds any text that fits, and is sent as %q, under the word %q", name, m.name, w)
	}
}

// suspectValue looks into a value for members.
func (l *linter) suspectValue(v *valueNode) {
	if v == nil {
		return
	}
	for _, a := range v.args {
		l.suspectValue(a)
	}
	for _, m := range v.members {
		l.suspectPlace(m)
	}
}

func suspectMember(name string) string {
	spoken := " " + strings.Join(words(name), " ") + " "
	for _, w := range suspectMembers {
		if strings.Contains(spoken, " "+w+" ") {
			return w
		}
	}
	return suspectWord(name)
}

// suspectNames remarks on free inputs that are called like an authority.
func (l *linter) suspectNames() {
	view := schemaView{root: l.c.inputDoc}
	names := view.names()
	for _, ptr := range sortedKeys(names) {
		w := suspectInput(names[ptr])
		if w == "" || authorsOwn(view, schemaAt(view.root, ptr)) || slices.Contains(l.c.route.by, names[ptr]) {
			continue
		}
		l.say("input-suspect-name", l.at("input", ptr), "give it an enum, or call it after what it means to the task",
			"the input %q holds any text that fits, under the word %q", names[ptr], w)
	}
}

// suspectInput is suspectWord for the name of an input.
func suspectInput(name string) string {
	if w := suspectWord(name); w != "" {
		return w
	}
	return wordOf(name, suspectInputs)
}

func wordOf(name string, suspects []string) string {
	for _, w := range words(name) {
		if slices.Contains(suspects, w) || slices.Contains(suspects, strings.TrimSuffix(w, "s")) {
			return w
		}
	}
	return ""
}

func suspectWord(name string) string {
	ws := words(name)
	for i, w := range ws {
		if i+1 < len(ws) && w == "api" && strings.HasPrefix(ws[i+1], "key") {
			return "apikey"
		}
	}
	return wordOf(name, suspectWords)
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
