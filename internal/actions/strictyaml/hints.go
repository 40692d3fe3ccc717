package strictyaml

// plainHints say the way out where the place that reports a mistake has nothing
// better to say: one for each rule of the files read here.
var plainHints = map[string]string{
	"action":              "the folder has the action's name: small letters, digits and _, three to 64 of them",
	"address":             "write the host's own name, or its plain IPv4 or IPv6 address",
	"approval":            "a sentence holds {input.NAME} and {target.NAME}; show holds short labels with one value each",
	"body":                "write one of json, form and text in a request that carries a body, and a content_type that fits it",
	"ca":                  "name a PEM file beside the site file that the daemon can read",
	"check":               "write one check an entry, such as same: [result.x, input.x]; it looks at a member of the result",
	"depth":               "make it flatter",
	"effects":             "list one or more of read, change and destroy",
	"exclusive":           "take one of the two away",
	"failure-code":        "give NOT_FOUND, a REMOTE_ code, OUTCOME_UNKNOWN for a change, or a code declared under failures",
	"failures":            "give the code another name, or fewer codes",
	"file":                "name a file that exists and may be read, beside this one or below it",
	"header":              "write each header once, by its name alone, such as Accept",
	"header-refused":      "take it away; the executor, the identity or the operator's target writes it",
	"header-value":        "write visible ASCII on one line",
	"idempotency":         "write one of {header: Idempotency-Key}, {json: /member} beside a JSON body, and {natural: true}",
	"identity":            "write visible ASCII on one line; a user name has no colon",
	"ssh-target":          "name the host's own public keys, and commands as lists of words",
	"keys":                "name a JWK Set beside the site file that the daemon can read",
	"list":                "name one entry or more",
	"missing-key":         "add the key",
	"nodes":               "split the file, or take away what nobody needs",
	"not-in-this-release": "take it away until a release takes it",
	"once":                "take the key away; a read may be repeated anyway",
	"outcome":             "see Outcomes in the contract format: one row or more, one of them with success, each reading only what its media has",
	"outcome-end":         "give the row one of success and failure",
	"outcome-status":      "write each status once; after 408 and 5xx a change ends in OUTCOME_UNKNOWN, or in not_done: true with a fixture",
	"path":                "write / and constant segments, {input.NAME} or {target.NAME}, {NAME...} where it may hold /; the query stands under query",
	"path-input":          "give it an enum or an anchored pattern over [A-Za-z0-9._-], without . and ..",
	"pattern":             "begin with ^ and end with $, and list the characters",
	"pick":                "write /pointer, or an object that begins with one of find, at, header, from, const and each",
	"pick-missing":        "pick it from the answer, or take it out of required in the result",
	"predicate":           "write one predicate with as many values as it takes, such as equals: [/state, done]",
	"query":               "write each key out; its value is plain or a list of plain values",
	"range":               "write a value within these bounds",
	"refused-member":      "take it away",
	"repeated":            "write it once",
	"retry":               "list the codes that are worth another attempt, such as UPSTREAM_UNAVAILABLE",
	"route":               "write {target: NAME}, {by: [INPUT], cases: […]} or {by: INPUT, list: NAME}; by names required enums at the top of the input",
	"route-case":          "give every combination of the inputs' values exactly one case",
	"schema-compile":      "write it in JSON Schema 2020-12, closed and bounded",
	"size":                "split the file, or take away what nobody needs",
	"ssh":                 "take it away until a release plays steps over SSH",
	"syntax":              "see whether quotes and brackets are closed and lines are indented with spaces",
	"targets":             "take away those that no contract goes to",
	"text":                "write one line of visible characters, not empty and not longer than that",
	"type":                "write a value of that kind, such as word, 10, true, [one, two] or {key: value}",
	"url":                 "write https://HOST, https://HOST:PORT or one of these with a base path",
	"value":               "give the function as many values as it takes",
	"value-path":          "name what the schema or the site file declares",
	"value-type":          "place a value of that kind, or a function that makes one",
	"pick-unknown":        "declare it, or take the pick away",
	"unknown-key":         "take it away",
	"with":                "write a text, a number, or true or false",
	"word":                "write one of the known words",
	"empty":               "write the file's keys and values",
	"effect-method":       "take it away, or write effect: read",
}

// kindHints show a value of the kind that a place needs.
var kindHints = map[Kind]string{
	Null:     "write null",
	Bool:     "write true or false",
	Number:   "write a number, such as 10",
	String:   "write a text, such as \"a word\"",
	Sequence: "write a list, such as [one, two]",
	Mapping:  "write a mapping, such as {key: value}, or its keys indented below, a line each",
}

// hintOr returns the hint, or what is said about every mistake of the rule.
func hintOr(hint, rule string) string {
	if hint == "" {
		return plainHints[rule]
	}
	return hint
}
