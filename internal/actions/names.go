package actions

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

func itoa(i int) string { return strconv.Itoa(i) }

// Shapes of the names that contracts and the site file give.
var (
	actionName   = regexp.MustCompile(`^[a-z][a-z0-9_]{2,63}$`)
	inputName    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	memberName   = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	targetName   = regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,63}$`)
	listKey      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	codeName     = regexp.MustCompile(`^[A-Z][A-Z0-9_]{2,63}$`)
	semanticVers = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})(-(0|[1-9][0-9]{0,8}|[0-9]{0,9}[A-Za-z-][0-9A-Za-z-]{0,40})(\.(0|[1-9][0-9]{0,8}|[0-9]{0,9}[A-Za-z-][0-9A-Za-z-]{0,40})){0,9})?(\+[0-9A-Za-z-]{1,40}(\.[0-9A-Za-z-]{1,40}){0,9})?$`)
)

// forbiddenInputWords are the words that no input's name contains: an input
// with such a name chooses a place, an identity or a command. Those that are
// plurals are meant as such: a flag is one fact, flags are a command's.
var forbiddenInputWords = []string{
	"url", "uri", "host", "endpoint", "path", "header", "headers", "method", "command", "cmd", "args", "flags",
	"credential", "token", "account", "profile", "region", "proxy", "script", "query",
}

// innocentWords end like a forbidden word and mean something else.
var innocentWords = []string{
	"curl", "hurl", "unfurl", "ghost", "empath", "footpath", "transcript", "manuscript", "postscript", "conscript", "subscript", "superscript",
}

// tailWords are what a name that is written without any mark between its words
// puts behind a forbidden one: hostname, cmdline, tokenvalue.
var tailWords = []string{
	"s", "es", "name", "names", "id", "ids", "value", "line", "string", "list", "key", "text", "type", "code", "file", "ip", "addr", "address", "port", "base",
}

// forbiddenWord returns the forbidden word in a name, "" where there is none.
// Plurals count, and so do words written together with digits or, in a name
// without marks, with each other.
func forbiddenWord(name string) string {
	for _, w := range append(words(name), words(acronymEnd.ReplaceAllString(name, "${1}_${2}"))...) {
		w = strings.Trim(w, "0123456789")
		for _, f := range forbiddenInputWords {
			if holdsWord(w, f) {
				return f
			}
		}
	}
	return ""
}

// acronymEnd is where a run of capitals meets small letters, as in URLpath. Its
// last capital usually begins the next word; here it may also end the run.
var acronymEnd = regexp.MustCompile(`([A-Z]{2,})([a-z])`)

// holdsWord says whether a word is f, in one or several, or ends or begins with
// it as compound names do.
func holdsWord(w, f string) bool {
	one := strings.TrimSuffix(w, "s")
	if w == f || w == strings.TrimSuffix(f, "y")+"ies" {
		return true
	}
	if slices.Contains(innocentWords, w) || slices.Contains(innocentWords, one) {
		return false
	}
	if strings.HasSuffix(w, f) || strings.HasSuffix(one, f) {
		return true
	}
	tail, begins := strings.CutPrefix(w, f)
	return begins && (f == "credential" || slices.Contains(tailWords, tail)) // nothing else begins with credential
}

// words splits a name in any case style into lower-case words.
func words(name string) []string {
	var out []string
	var cur []rune
	flush := func() {
		if len(cur) > 0 {
			out = append(out, folded(string(cur)))
			cur = nil
		}
	}
	rs := []rune(plainForm(name))
	for i, r := range rs {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			continue
		case unicode.IsUpper(r) && i > 0:
			lowerBefore := unicode.IsLower(rs[i-1]) || unicode.IsDigit(rs[i-1])
			plural := i+1 < len(rs) && rs[i+1] == 's' && (i+2 == len(rs) || !unicode.IsLower(rs[i+2])) // URLs
			lowerAfter := i+1 < len(rs) && unicode.IsLower(rs[i+1]) && !plural
			if lowerBefore || lowerAfter && unicode.IsUpper(rs[i-1]) {
				flush()
			}
		}
		cur = append(cur, r)
	}
	flush()
	return out
}

// folded gives one spelling of letters that readers of JSON may take for the same:
// by way of the capital, so that a long s is an s and the sign of Kelvin a k.
func folded(s string) string { return strings.ToLower(strings.ToUpper(s)) }

// plainForm writes full-width letters, ligatures and other look-alikes as the letters
// that they stand for (NFKC, Unicode Standard Annex 15) and leaves out what nobody
// sees: a service that does the same would read a name that we did not.
func plainForm(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, norm.NFKC.String(name))
}

// keyPieces splits a query key as servers do that read nested values out of
// brackets and dots.
func keyPieces(name string) []string {
	name = plainForm(name)
	return append([]string{name}, strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("[]. ", r) })...)
}

// forbiddenMember says whether a body member or query key may not hold an
// input: a remote system would take its value for a program or a place.
func forbiddenMember(name string) bool {
	ws := words(name)
	snake := strings.Join(ws, "_")
	switch snake {
	case "query", "mutation", "script", "command", "sql", "jql", "expression", "template", "url", "uri", "endpoint", "host":
		return true
	}
	for _, begin := range []string{"callback", "webhook", "redirect", "endpoint"} {
		if strings.HasPrefix(snake, begin) || strings.HasPrefix(strings.ReplaceAll(snake, "_", ""), begin) {
			return true
		}
	}
	return strings.HasSuffix(snake, "_url") || strings.HasSuffix(snake, "_uri")
}

// runnableNames are names that forbiddenMember and overridingMember refuse, for
// patterns of names that a value chooses itself.
var runnableNames = []string{
	"query", "mutation", "script", "command", "sql", "jql", "expression", "template", "url", "uri", "endpoint", "host",
	"callback", "webhook", "redirect", "callback_url", "webhook_url", "redirect_uri", "callbackUrl", "webhookUrl", "redirectUri",
	"URL", "SQL", "Query", "Url", "_method", "sudo", "x_url",
}

// overridingMember says whether a query or form key changes what the request is
// or for whom; it is refused even with a constant.
func overridingMember(name string) bool {
	n := folded(strings.TrimSpace(plainForm(name)))
	return n == "_method" || n == "sudo"
}

// headerAllowList are the headers that every contract may set.
var headerAllowList = []string{"Accept", "Accept-Language", "If-Match", "If-None-Match", "Prefer", "User-Agent"}

// refusedHeaders may be set by nobody but the executor and the vault; those
// that end in * are beginnings.
var refusedHeaders = []string{
	"host", "content-length", "content-type", "content-encoding", "cookie", "cookie2", "set-cookie", "authorization",
	"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect", "accept-encoding",
	"x-http-method*", "x-method-override", "impersonate-*", "sudo", "x-remote-user", "x-forwarded*", "forwarded",
	"proxy-*", "x-on-behalf-of", "x-original-*", "x-rewrite-*", "range", "x-real-ip",
}

func refusedHeader(name string) bool {
	n := strings.ToLower(name)
	return slices.ContainsFunc(refusedHeaders, func(r string) bool {
		if begin, ok := strings.CutSuffix(r, "*"); ok {
			return strings.HasPrefix(n, begin)
		}
		return n == r
	})
}
