package actions

import (
	"regexp"
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// approvalSpec is what a person is shown, and how often they are asked.
type approvalSpec struct {
	sentence []sentencePart // nil for a read without approval
	text     string         // as written
	show     []showLine
	ask      Ask
	pos      strictyaml.Pos
}

// sentencePart is a piece of the author's words or a value.
type sentencePart struct {
	lit  string
	node *valueNode
}

type showLine struct {
	label string
	node  *valueNode
}

const (
	maxSentence = 300
	maxLabel    = 40
	maxShow     = 20
)

var sentencePath = regexp.MustCompile(`\{([^{}]*)\}`)

func (d *draft) approve(n *strictyaml.Node) {
	a := &d.c.approval
	if d.c.effect == Read {
		a.ask = AskNever
	} else {
		a.ask = AskSession
	}
	if d.c.effect == Destroy {
		a.ask = AskEveryCall
	}
	if n == nil {
		if d.c.effect != Read && d.c.effect != 0 && d.root.Get("approval") == nil {
			d.bad(d.root.Pos, "approval", "write the sentence that a person approves", "a contract that changes something needs the key \"approval\"")
		}
		return
	}
	if !d.f.Map(n, "approval", "sentence", "show", "ask") {
		return
	}
	a.pos = n.Pos
	d.place = placeApproval
	defer func() { d.place = placeRead }()
	if s := d.f.Require(n, "approval", "sentence"); s != nil {
		a.pos = s.Pos
		a.text = d.sentence(s, "sentence", maxSentence)
		a.sentence = d.sentenceParts(s, a.text)
	}
	d.show(n.Get("show"))
	d.ask(n.Get("ask"))
}

func (d *draft) ask(n *strictyaml.Node) {
	if n == nil {
		return
	}
	word, ok := d.f.Word(n, "ask", "session", "every_call")
	if !ok {
		return
	}
	if d.c.effect == Destroy && word != "every_call" {
		d.bad(n.Pos, "approval", "write ask: every_call, or take the key away", "what destroys is asked about at every call")
		return
	}
	d.c.approval.ask = askNames[word]
}

// sentenceParts splits the sentence at its placeholders.
func (d *draft) sentenceParts(n *strictyaml.Node, text string) []sentencePart {
	var out []sentencePart
	at := 0
	for _, m := range sentencePath.FindAllStringSubmatchIndex(text, -1) {
		out = append(out, sentencePart{lit: text[at:m[0]]})
		path := text[m[2]:m[3]]
		root, _, _ := strings.Cut(path, ".")
		if _, looked := d.gatheredBy(root); root != "input" && root != "target" && !looked {
			d.bad(n.Pos, "approval", "a sentence holds {input.NAME}, {target.NAME} and {LOOKUP.NAME}", "{%s} cannot stand in a sentence", path)
		} else if d.path(n.Pos, path, kindScalar, true, nil) {
			out = append(out, sentencePart{node: &valueNode{op: opFrom, pos: n.Pos, path: path, optional: true}})
		}
		at = m[1]
	}
	rest := text[at:]
	if strings.ContainsAny(sentencePath.ReplaceAllString(text, ""), "{}") {
		d.bad(n.Pos, "approval", "", "the sentence has a brace that belongs to no placeholder")
	}
	return append(out, sentencePart{lit: rest})
}

func (d *draft) show(n *strictyaml.Node) {
	if n == nil || !d.f.Is(n, strictyaml.Mapping, "show") {
		return
	}
	if len(n.Members) > maxShow {
		d.bad(n.Pos, "approval", "", "more than %d lines", maxShow)
		return
	}
	for _, m := range n.Members {
		if len([]rune(m.Key)) > maxLabel || !oneLine(m.Key) || strings.TrimSpace(m.Key) == "" {
			d.bad(m.KeyPos, "approval", "", "a label has 1 to %d visible characters", maxLabel)
		}
		if v := d.value(m.Value, kindAny, nil); v != nil {
			d.c.approval.show = append(d.c.approval.show, showLine{m.Key, v})
		}
	}
}

// form is the sentence with its inputs' names in braces.
func (a approvalSpec) form() string {
	return sentencePath.ReplaceAllStringFunc(a.text, func(m string) string {
		_, name, _ := strings.Cut(m[1:len(m)-1], ".")
		return "{" + name + "}"
	})
}
