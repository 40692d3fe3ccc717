package actions

import "chatelaine/internal/actions/strictyaml"

// What may be called how, for the programs that write contracts.

// TargetURLMistake says why a text is no url of a target that says nothing more,
// "" where it is one.
func TargetURLMistake(text string) string { return urlMistake(text, endpointTarget) }

// TokenURLMistake says why a text is no url of a token endpoint that says nothing
// more, "" where it is one.
func TokenURLMistake(text string) string { return urlMistake(text, endpointToken) }

// IsScope says whether a text is one scope of a token (RFC 6749, section 3.3).
func IsScope(text string) bool { return scopeToken.MatchString(text) }

func urlMistake(text string, use endpointUse) string {
	s := &site{f: strictyaml.Parse("url", nil, strictyaml.Limits{})}
	before := s.f.Count() // the file itself is empty
	s.address(&strictyaml.Node{Kind: strictyaml.String, Text: text}, &endpoint{}, use)
	if s.f.Count() == before {
		return ""
	}
	for _, p := range s.f.Problems() {
		if p.Rule != "empty" {
			return p.Message
		}
	}
	return ""
}

// ForbiddenInputWord returns the word that keeps a name from being an input's,
// "" where there is none.
func ForbiddenInputWord(name string) string { return forbiddenWord(name) }

// IsInputName says whether a name has the form of an input's.
func IsInputName(name string) bool { return inputName.MatchString(name) }

// IsActionName says whether a name has the form of an action's.
func IsActionName(name string) bool { return actionName.MatchString(name) }

// IsTargetName says whether a name has the form of a target's and an identity's.
func IsTargetName(name string) bool { return targetName.MatchString(name) }

// ForbiddenMember says whether a body member, query or form key may not hold an
// input, or may not stand at all.
func ForbiddenMember(name string) bool { return forbiddenMember(name) || overridingMember(name) }

// RefusedHeader says whether neither a contract nor an identity of its own
// header may set the header.
func RefusedHeader(name string) bool { return refusedHeader(name) }
