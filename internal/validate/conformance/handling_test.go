//go:build conformance

package conformance

// stricter explains, by file, why we refuse what the suite accepts.
var stricter = map[string]string{
	"format.json":                    "formats are asserted here, always: a contract that names one means it",
	"optional/float-overflow.json":   "the parser refuses the number: exponent",
	"optional/format/date-time.json": "a leap second has no place in any clock of ours",
	"optional/format/email.json":     "a quoted local part can hold prose, an address literal names no host",
}

const (
	outOfReach = "out of reach: the guard takes none of these keywords (schema-keyword)"
	ourFormat  = "out of reach: the guard refuses the format (schema-format)"
	dialects   = "refused by the guard: one pattern dialect, spelled out (schema-pattern); what is left is read the same way by ECMA 262"
)

// handled says, by engine and file, what becomes of a difference between an
// engine alone and the suite.
var handled = map[string]string{
	"santhosh-tekuri optional/ecmascript-regex.json":     dialects,
	"santhosh-tekuri optional/format-assertion.json":     "out of reach: no other dialect (schema-dialect), and formats are always asserted",
	"santhosh-tekuri optional/format/idn-email.json":     ourFormat,
	"santhosh-tekuri optional/format/idn-hostname.json":  ourFormat,
	"kaptinlin content.json":                             outOfReach + "; it asserts what the draft only annotates",
	"kaptinlin vocabulary.json":                          "out of reach: no other dialect (schema-dialect)",
	"kaptinlin optional/cross-draft.json":                "out of reach: no other draft and no remote reference (schema-dialect, schema-ref)",
	"kaptinlin optional/dependencies-compatibility.json": outOfReach + "; it takes no notice of the old keyword",
	"kaptinlin optional/ecmascript-regex.json":           dialects,
	"kaptinlin optional/format-assertion.json":           "out of reach: no other dialect (schema-dialect), and formats are always asserted",
	"kaptinlin optional/format/idn-hostname.json":        ourFormat,
	"kaptinlin optional/refOfUnknownKeyword.json":        "out of reach: a reference leads only to where a schema stands (schema-ref)",
}
