package actions

import (
	"regexp"
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// secretForms are how credentials of well-known kinds begin. A contract is read
// by everybody; what it needs to prove who calls lies in the vault.
var secretForms = []*regexp.Regexp{
	regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY`),
	regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{12,}`),
	regexp.MustCompile(`\b(AKIA|ASIA)[0-9A-Z]{16}\b`),
	regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{20,}`),
	regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{20,}`),
	regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{16,}`),
	regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`),
	regexp.MustCompile(`\b(sk|rk)_(live|test)_[A-Za-z0-9]{10,}`),
	regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.`),
	regexp.MustCompile(`[a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s@]+@`),
}

// address is a URL with a host.
var address = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s/]`)

// constants looks for hosts in what is sent, and for credentials anywhere.
func (l *linter) constants() {
	for _, st := range l.c.allSteps() {
		for _, m := range slices.Concat(st.query, st.headers) {
			l.hosts(m.node)
		}
		l.hosts(st.body)
	}
	l.secrets(l.root)
}

func (l *linter) hosts(v *valueNode) {
	if v == nil {
		return
	}
	if v.op == opConst {
		for _, text := range textsIn(v.lit) {
			if address.MatchString(text) {
				l.say("host-in-contract", v.pos, "put the address under `with` at the target and write {from: target.NAME}", "the request sends an address that the contract names")
			}
		}
	}
	for _, a := range v.args {
		l.hosts(a)
	}
	for _, m := range v.members {
		l.hosts(m.node)
	}
}

// textsIn lists the texts of a constant, members' names left out.
func textsIn(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, x := range v {
			out = append(out, textsIn(x)...)
		}
		return out
	case map[string]any:
		var out []string
		for _, name := range sortedKeys(v) {
			out = append(out, textsIn(v[name])...)
		}
		return out
	}
	return nil
}

// secrets never quotes what it finds.
func (l *linter) secrets(n *strictyaml.Node) {
	if n == nil {
		return
	}
	if n.Kind == strictyaml.String && slices.ContainsFunc(secretForms, func(re *regexp.Regexp) bool { return re.MatchString(n.Text) }) {
		l.say("secret-in-contract", n.Pos, "take it out, change it where it is valid, and put the new one into the vault", "this looks like a credential")
	}
	for _, it := range n.Items {
		l.secrets(it)
	}
	for _, m := range n.Members {
		l.secrets(m.Value)
	}
}

// comparedMembers are names under which services take the edition that a change
// is meant for, as words written together.
var comparedMembers = []string{
	"sha", "etag", "cas", "revision", "resourceversion", "lockversion", "ifversion", "expectedversion", "modifyindex", "versionid",
}

// compareAndSet remarks on requests that call themselves repeatable and are only
// taken once: the repeat of one that worked is refused.
func (l *linter) compareAndSet() {
	if !l.c.idem.natural {
		return
	}
	st := &l.c.request
	const hint = "declare reconcile or at_most_once instead"
	for _, h := range st.headers {
		if h.name == "If-Match" || h.name == "If-None-Match" {
			l.say("natural-compare", h.pos, hint, "a request with %s is refused when it is repeated, so it is not repeatable by nature", h.name)
		}
	}
	members := slices.Clone(st.query)
	if st.body != nil {
		members = append(members, st.body.members...)
	}
	for _, m := range members {
		sent := map[string]bool{}
		m.node.paths(sent)
		for _, p := range sortedKeys(sent) {
			root, _, _ := strings.Cut(p, ".")
			looked := slices.ContainsFunc(l.c.lookups, func(s *stepSpec) bool { return s.name == root })
			if looked && slices.Contains(comparedMembers, oneWord(m.name)) {
				l.say("natural-compare", m.pos, hint, "%s holds the edition that a lookup found, so a repeat is refused, and the request is not repeatable by nature", m.name)
			}
		}
	}
}
