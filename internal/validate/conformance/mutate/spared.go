package main

// Why the loss of a check cannot be noticed from outside: something behind it
// refuses the same, or nothing can reach it. Such a check stays as a second
// line, or because it says what is meant.
const (
	twice    = "doubled: the zero value that is left behind is refused by the next check"
	byTime   = "doubled: time.Parse refuses it as well"
	byLength = "doubled: an empty list is refused in the same line"
	anchored = "doubled: a form's pattern is anchored at both ends"
	noSchema = "out of reach: the guard leaves no schema that an engine refuses; the suite and FuzzEngines look for one"
	byBytes  = "doubled: no string is longer than its document"
	byJose   = "doubled: of the error, the panic and the bytes of go-jose each alone is a refusal"
	content  = "out of reach: the guard takes no content keyword"
)

// spared says of a check why its loss cannot be noticed from outside.
var spared = map[string]string{
	"checks look: !ok":                 twice,
	"checks moment: !ok":               twice,
	"checks moment: !text":             twice,
	"convert toInteger: ok":            twice,
	"convert toText: !ok":              twice,
	"convert lastSegment: !ok":         twice,
	"predicate compileNumber: !ok":     twice,
	"prove code: !ok":                  twice,
	"timeforms textTime: !ok":          twice,
	"timeforms unixTime: !ok":          twice,
	"formats isEmail: !ok":             twice,
	"guard ref: !ok":                   twice,
	"guard isCount: !ok":               twice,
	"checks afterCall: !ok":            "doubled: the zero time lies before every call",
	"signed verify: !ok":               twice,
	"signed readJWSHeader: err != nil": twice,
	"signed readJWSHeader: !ok":        twice,
	"signed claims: err != nil":        twice,
	"keyset publicKey: !ok":            twice,
	"keyset publicKey: err != nil":     "doubled: a key that go-jose did not read is not valid",
	"keyset publicKey: !k.Valid()":     "doubled: go-jose does not read such a key",
	"keyset publicKey: !k.IsPublic()":  "out of reach: no private member comes so far",
	"keyset publicKey: (name == \"x\" || name == \"y\") && len(raw) != size": "doubled: go-jose refuses another length",
	"keyset publicKey: public.E < 3":                                         "out of reach: go-jose refuses such a key",
	"keyset publicKey: n > rsaBitsMax":                                       "out of reach: go-jose refuses such a key",
	"pointer Get: err != nil":                                                "doubled: the index 0 is not spelled like the name",

	"convert lastSegment: u.Opaque != \"\"":             "doubled: an opaque URL has no host",
	"decimal number: c >= '0' && c <= '9'":              "out of reach: the scan before it takes every digit",
	"form compileLine: err != nil (2)":                  "out of reach: what parses as RE2 compiles",
	"pattern LintPattern: err != nil (2)":               "out of reach: what parses as RE2 compiles",
	"pattern isAnchored: len(r.Sub) < 2":                "out of reach: a concatenation has two parts",
	"formread plain: c < utf8.RuneSelf":                 "only speed: the slower way refuses the same",
	"formread row: err != nil":                          "doubled: the first word of the row is counted as well",
	"formread readLine: found[0] != 0":                  anchored,
	"formread readLine: found[1] != to-from":            anchored,
	"guard list: !ok":                                   byLength,
	"guard enum: !ok":                                   byLength,
	"keyset ParseKeySet: !ok":                           byLength,
	"keyset checkKeyMembers: !ok":                       byLength,
	"guard ref: err != nil":                             "doubled: no schema stands where no pointer leads",
	"guard types: !text":                                "doubled: what is no text is none of the seven names",
	"guard isCount: ok":                                 "out of reach: the guard has read every number before",
	"keyset find: kid != \"\"":                          "out of reach: in a set of several keys each has a kid",
	"parsetext escape: !ok (2)":                         "doubled: what is left behind is half a pair as well",
	"pattern rangeEnd: strings.HasPrefix(after, class)": "out of reach: RE2 refuses such a range",

	"keyset publicKey: ten times rsaBitsMax in n > rsaBitsMax":              "out of reach: go-jose refuses such a key",
	"signed readJWSHeader: ten times keyIDBytes in len(h.kid) > keyIDBytes": "doubled: no key of a set has so long a kid",
	"limits AnswerLimits: ten times StringBytes: answerBytes":               byBytes,
	"limits CallerLimits: ten times StringBytes: callerBytes":               byBytes,

	"formats isOffset: (s[0] == '+' || s[0] == '-')": byTime,
	"formats isOffset: s[3] == ':'":                  byTime,
	"formats isOffset: countDigits(s[1:3]) == 2":     byTime,
	"formats isOffset: countDigits(s[4:]) == 2":      byTime,
	"formats assemble: !isDate(date)":                byTime,
	"formats assemble: len(clock) != 8":              byTime,
	"formats assemble: countDigits(clock) != 2":      byTime,
	"formats assemble: countDigits(clock[3:]) != 2":  byTime,
	"formats assemble: countDigits(clock[6:]) != 2":  byTime,
	"formats isDate: len(s) != 10":                   byTime,
	"formats isDate: countDigits(s) != 4":            byTime,
	"formats isDate: countDigits(s[5:]) != 2":        byTime,
	"formats isDate: countDigits(s[8:]) != 2":        byTime,
	"formats isIPv4: err == nil":                     "doubled: the zero address is of no version",
	"formats isIPv4: a.String() == s":                "doubled: netip refuses every other spelling",

	"prove parse: err != nil":                                                     "out of reach: no reader of a form returns another error",
	"prove_schema proveSchema: err != nil":                                        noSchema,
	"schema CompileSchema: err != nil":                                            noSchema,
	"schema compileBoth: err != nil (2)":                                          noSchema,
	"schema compileFirst: err != nil":                                             noSchema,
	"schema compileSecond: len(open) > 0":                                         "doubled: kaptinlin refuses such a schema itself since 0.9.10",
	"schema compileFirst: c.DefaultDraft(first.Draft2020)":                        "doubled: it is the library's own default",
	"schema compileSecond: clear(c.Decoders)":                                     content,
	"schema compileSecond: clear(c.MediaTypes)":                                   content,
	"prove_schema isResult: p.use != UseExpect":                                   "doubled: text and number ask for expect first",
	"prove_schema product: ten times alternativeCap in len(out) > alternativeCap": "only work: value looks at the same cap",

	"schema compileFirst: c.UseRegexpEngine(compileKept)": "only speed: the engine would compile the same pattern again",

	"signed verifyJWS: recover() != nil":             byJose,
	"signed verifyJWS: err != nil":                   byJose,
	"signed verifyJWS: err == nil":                   byJose,
	"signed verifyJWS: bytes.Equal(signed, payload)": byJose,
}
