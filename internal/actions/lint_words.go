package actions

import (
	"regexp"
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// instructions are what makes a text one that an agent might act on: it
// speaks to the reader, orders, or talks about what steers agents.
var instructions = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b(you|your|yours|yourself)\b`),
	regexp.MustCompile(`(?i)\b(ignore|disregard|forget|override|bypass|pretend|exfiltrate)\b`),
	regexp.MustCompile(`(?i)\b(must|shall|should|always|never|now|then|first|please|immediately)\s+(be\s+)?(call|called|use|used|run|send|invoke|invoked|ask|tell|reply|respond|approve|obey|follow|read|write|include|output|print|reveal)\b`),
	regexp.MustCompile(`(?i)\b(do not|don't|dont|without)\s+(telling|tell|ask|asking|mention|mentioning|stop|warn|confirm|confirming|approval)\b`),
	regexp.MustCompile(`(?i)\b(call|invoke|run|use)\s+[a-z0-9]+_[a-z0-9_]+`),
	regexp.MustCompile(`(?i)\b(system|developer)\s+(prompt|message|instructions?)\b`),
	regexp.MustCompile(`(?i)\b(prompts?|instructions?|assistant|language model|llm|chatbot|jailbreak|roleplay|act as)\b`),
	regexp.MustCompile(`(?i)\b(previous|prior|preceding|earlier|above)\s+(messages?|rules?|texts?|orders?|context)\b`),
	regexp.MustCompile(`(?i)^\s*(important|attention|warning|note|system|user|human|tool)\s*[:!]`),
}

// markup is what other programs show or follow instead of printing it.
var markup = []*regexp.Regexp{
	regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://|\bwww\.|\b(mailto|javascript|data):`),
	regexp.MustCompile("`|\\*\\*|__|\\]\\(|^\\s*#|\\{\\{|\\}\\}|\\$\\{"),
	regexp.MustCompile(`<[/!?A-Za-z|]|\|>|&[a-z]+;|&#|\[/?[A-Z]{3,}\]`),
}

// words looks at every text of the author's that an agent reads.
func (l *linter) words() {
	p := l.c.places
	l.prose("summary", l.at("summary", ""), l.c.summary)
	for _, o := range l.c.failures {
		l.prose("the message of "+o.Code, p.failures[o.Code], o.Message)
		l.label("the code", p.failures[o.Code], o.Code)
	}
	for _, name := range l.c.DisplayNames() {
		l.label("the display text", l.at("display", "/"+name), name)
	}
	l.label("the action", l.at("action", ""), l.c.action)
	l.schemaWords("input", l.c.inputDoc)
	l.schemaWords("result", l.c.resultDoc)
}

// maxRemark bounds a remark in a schema: it is published, and an agent reads all
// of it.
const maxRemark = 300

func (l *linter) prose(what string, at strictyaml.Pos, text string) {
	l.label(what, at, text)
	if n := len([]rune(text)); n > maxRemark {
		l.say("text-long", at, "keep to what a caller must know about the value", "%s has %d characters; the most is %d", what, n, maxRemark)
	}
	for _, re := range markup {
		if m := re.FindString(text); m != "" {
			l.say("text-markup", at, "say it in plain words; where to read more belongs to the owner's pages", "%s holds %q, which is an address or markup", what, m)
			return
		}
	}
}

// label looks for instructions and hidden characters: a name or a value has no
// markup of its own.
func (l *linter) label(what string, at strictyaml.Pos, text string) {
	if !oneLine(text) {
		l.say("text-hidden", at, "write it on one line, with visible characters only", "%s holds characters that a reviewer does not see", what)
	}
	plain := text
	if !strings.ContainsRune(text, ' ') {
		plain = strings.Join(words(text), " ")
	}
	for _, re := range instructions {
		for _, t := range []string{text, plain} {
			if m := re.FindString(t); m != "" {
				l.say("text-instructs", at, "say what is so, not what to do; leave out words to the reader", "%s holds %q, which an agent could take for an instruction", what, m)
				return
			}
		}
	}
}

// schemaWords looks at the names, remarks and values of a published schema.
func (l *linter) schemaWords(key string, doc map[string]any) {
	view := schemaView{root: doc}
	names := view.names()
	for _, ptr := range sortedKeys(names) {
		l.label("the name "+quoted(names[ptr]), l.at(key, ptr), names[ptr])
	}
	eachSchema(doc, "", func(s map[string]any, ptr string) {
		for _, word := range []string{"title", "description", "$comment"} {
			if text, ok := s[word].(string); ok {
				l.prose("the "+word, l.at(key, ptr+"/"+word), text)
			}
		}
		values, _ := s["enum"].([]any)
		examples, _ := s["examples"].([]any)
		for _, v := range append(append([]any{s["const"]}, values...), examples...) {
			if text, ok := v.(string); ok {
				l.label("a value", l.at(key, ptr), text)
			}
		}
	})
}
