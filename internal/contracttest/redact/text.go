package redact

import (
	"net/netip"
	"regexp"
	"strings"
)

// What is found inside any text, by what it looks like.
var (
	pemBlock = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]+-----[\s\S]*?(?:-----END [A-Z0-9 ]+-----|$)`)
	jwt      = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`)
	// marked are secrets whose services give them a mark.
	marked = regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_|glpat-|gldt-|xox[abeoprs]-|xapp-|sk_live_|sk_test_|rk_live_|rk_test_|whsec_|AKIA|ASIA|AIza|ya29\.|npm_|pypi-|dop_v1_|shpat_|SG\.|hvs\.|sntrys_|glsa_|PMAK-|lin_api_)[A-Za-z0-9_.-]{10,}`)
	scheme = regexp.MustCompile(`(?i)\b(Bearer|Basic|Token)\s+([A-Za-z0-9+/_.=~-]{8,})`)
	inURL  = regexp.MustCompile(`(://)([^/\s@:]+)(?::([^/\s@]*))?@`)
	// inQuery are members of a query or a form whose name says secret.
	inQuery = regexp.MustCompile(`(?i)([?&;](?:[a-z0-9_.-]*(?:token|secret|signature|password|passwd|apikey|api_key|access_key|credential)[a-z0-9_.-]*|sig|key|code|auth)=)([^&;#\s"']+)`)
	mail    = regexp.MustCompile(`[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,24}`)
	dotted  = regexp.MustCompile(`\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b`)
	coloned = regexp.MustCompile(`(?i)[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,8}(?:%[a-z0-9]+)?`)
	phone   = regexp.MustCompile(`\+[1-9][0-9 ().-]{6,}[0-9]`)
	uuids   = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	// word is a run of which a long token consists.
	word = regexp.MustCompile(`(?:[A-Za-z]{1,8}[_-]){0,3}[A-Za-z0-9]{16,}|[A-Za-z0-9+/_-]{32,}={0,2}`)
)

// Text replaces the secrets and persons that show inside a text by their own
// form. A name in a sentence does not show; a person looks through the fixture.
func (r *Redactor) Text(s string) string {
	whole := func(kind string) func(string) string {
		return func(m string) string {
			if r.isStandIn(m) {
				return m
			}
			return r.shape(kind, m)
		}
	}
	s = pemBlock.ReplaceAllStringFunc(s, r.pem)
	s = jwt.ReplaceAllStringFunc(s, whole(kindSecret))
	s = marked.ReplaceAllStringFunc(s, whole(kindSecret))
	s = replaceGroup(scheme, s, 2, whole(kindSecret))
	s = replaceGroup(inURL, s, 2, whole(kindSecret))
	s = replaceGroup(inURL, s, 3, whole(kindSecret))
	s = replaceGroup(inQuery, s, 2, whole(kindSecret))
	s = mail.ReplaceAllStringFunc(s, func(m string) string {
		if r.isStandIn(m) {
			return m
		}
		return r.email(m)
	})
	s = dotted.ReplaceAllStringFunc(s, r.address)
	s = coloned.ReplaceAllStringFunc(s, r.address)
	s = phone.ReplaceAllStringFunc(s, whole(kindPhone))
	s = uuids.ReplaceAllStringFunc(s, r.token)
	return word.ReplaceAllStringFunc(s, r.token)
}

// isStandIn says that a text was put there by us, so that it is not replaced
// again by a later rule.
func (r *Redactor) isStandIn(s string) bool { return r.used[s] }

// replaceGroup replaces one group of every match.
func replaceGroup(re *regexp.Regexp, s string, group int, f func(string) string) string {
	var b strings.Builder
	last := 0
	for _, m := range re.FindAllStringSubmatchIndex(s, -1) {
		from, to := m[2*group], m[2*group+1]
		if from < 0 || from == to {
			continue
		}
		b.WriteString(s[last:from] + f(s[from:to]))
		last = to
	}
	return b.String() + s[last:]
}

// pem keeps the lines that say what a block is.
func (r *Redactor) pem(block string) string {
	head, rest, _ := strings.Cut(block, "-----BEGIN ")
	label, rest, _ := strings.Cut(rest, "-----")
	body, end := rest, ""
	if i := strings.LastIndex(rest, "-----END "); i >= 0 {
		body, end = rest[:i], rest[i:]
	}
	return head + "-----BEGIN " + label + "-----" + r.shape(kindSecret, body) + end
}

// address replaces what is a network address; a version or a time is none.
// Loopback and addresses for documentation stay.
func (r *Redactor) address(s string) string {
	a, err := netip.ParseAddr(s)
	if err != nil || a.IsLoopback() || a.IsUnspecified() || r.isStandIn(s) {
		return s
	}
	if a.Is4() {
		return r.ipv4(s)
	}
	return r.ipv6(s)
}

// token replaces a long text that looks drawn by chance. One that belongs to the
// call stays: it is what was asked about.
func (r *Redactor) token(s string) string {
	if r.known[s] || r.isStandIn(s) || !drawn(s) {
		return s
	}
	return r.shape(kindToken, s)
}

// drawn says whether a text is no word: letters and digits mixed, behind a mark.
func drawn(s string) bool {
	if uuid.MatchString(s) {
		return true
	}
	rest := s[len(lead.FindString(s)):]
	digits, small, capital := 0, 0, 0
	for _, c := range rest {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z':
			small++
		case c >= 'A' && c <= 'Z':
			capital++
		}
	}
	// A word with a number behind it has few digits, in one place.
	return digits >= 3 && small+capital >= 3 && changes(rest) >= 4
}

// changes counts how often letters and digits take turns.
func changes(s string) int {
	n := 0
	for i := 1; i < len(s); i++ {
		if isDigit(s[i]) != isDigit(s[i-1]) {
			n++
		}
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
