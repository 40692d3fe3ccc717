package validate

import (
	"strings"
)

// bannedKeywords are real keywords, each with the way to do without it.
var bannedKeywords = map[string]string{
	"$id":              "leave it out; schemas of contracts refer only to themselves",
	"id":               "leave it out; schemas of contracts refer only to themselves",
	"$anchor":          "refer by #/$defs/NAME",
	"$dynamicAnchor":   "refer by #/$defs/NAME",
	"$dynamicRef":      "use $ref with #/$defs/NAME",
	"$recursiveRef":    "use $ref with #/$defs/NAME",
	"$recursiveAnchor": "use $ref with #/$defs/NAME",
	"$vocabulary":      "leave it out",
	"definitions":      "write $defs",
	"dependencies":     "use dependentRequired or dependentSchemas",
	"additionalItems":  "use prefixItems and items: false",
	"contentEncoding":  "use base64: true in a pick",
	"contentMediaType": "use a pick; nothing is parsed out of a string",
	"contentSchema":    "use a pick; nothing is parsed out of a string",
	"default":          "leave it out; no value is ever filled in",
	"nullable":         "write type: [string, \"null\"]",
	"readOnly":         "leave it out; it checks nothing",
	"writeOnly":        "leave it out; it checks nothing",
	"example":          "use examples, a list",
}

// keywordHint gives the way out for a keyword that is not allowed.
func keywordHint(name string) string {
	if hint, ok := bannedKeywords[name]; ok {
		return hint
	}
	best, distance := "", 3 // two slips of the finger
	for _, k := range sortedNames(keywords) {
		if strings.EqualFold(k, name) {
			return "did you mean " + k + "?"
		}
		if d := editDistance(k, name); d < distance {
			best, distance = k, d
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	return "use only keywords of draft 2020-12 that both engines check"
}

// editDistance is the Levenshtein distance in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
