package validate

// patternMembers bounds the members of one object where the schema has
// patternProperties. There kaptinlin compares each member that does not fit
// with all such members before it, so that an answer of many small members
// would cost the square of their number: some seconds in 1 MiB. With this bound
// the comparing stays below the rest of the work. No map of a service that
// contracts were cut from has a tenth of it.
const patternMembers = 2000

// ruleWide is the rule of an object that has more.
const ruleWide = "too-many-members"

// hasPatterns says whether a schema has patternProperties anywhere; a member of
// that name counts as well, which costs nothing but the bound.
func hasPatterns(doc any) bool {
	switch doc := doc.(type) {
	case []any:
		for _, e := range doc {
			if hasPatterns(e) {
				return true
			}
		}
	case map[string]any:
		if _, ok := doc["patternProperties"]; ok {
			return true
		}
		for _, e := range doc {
			if hasPatterns(e) {
				return true
			}
		}
	}
	return false
}

// isWide says whether an object in v has more members than patternMembers.
func isWide(v any) bool {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if isWide(e) {
				return true
			}
		}
	case map[string]any:
		if len(v) > patternMembers {
			return true
		}
		for _, e := range v {
			if isWide(e) {
				return true
			}
		}
	}
	return false
}
