package actions

// schemaRules are what every schema of a contract is held to; package validate
// decides them, where the loader reads the schema.
var schemaRules = []Rule{
	{
		ID: "schema-keyword", Page: "Top level", Severity: Error,
		Title:  "A keyword that is not checked here",
		Reason: "An unknown keyword is dropped by every engine, so a misspelt limit limits nothing; those read differently by two engines are refused too.",
	},
	{
		ID: "schema-dialect", Page: "Top level", Severity: Error,
		Title:  "A schema of another draft",
		Reason: "Other drafts give the same words other meanings.",
	},
	{
		ID: "schema-ref", Page: "Top level", Severity: Error,
		Title:  "A reference that leads out of the document, or nowhere",
		Reason: "Nothing is ever fetched, and a reference that leads nowhere checks nothing.",
	},
	{
		ID: "schema-recursion", Page: "Top level", Severity: Error,
		Title:  "A schema that refers to itself",
		Reason: "What has no end has no bound.",
	},
	{
		ID: "schema-true", Page: "Top level", Severity: Error,
		Title:  "`true` where a branch applies to the same value",
		Reason: "A branch that takes anything undoes the others.",
	},
	{
		ID: "schema-empty", Page: "Top level", Severity: Error,
		Title:  "An empty list of values, types or branches",
		Reason: "An empty list is read as everything by one engine and as nothing by another.",
	},
	{
		ID: "schema-null", Page: "Top level", Severity: Error,
		Title:  "null where a schema belongs",
		Reason: "One engine takes it for no schema, another refuses it.",
	},
	{
		ID: "schema-format", Page: "Top level", Severity: Error,
		Title:  "A format that is not checked here",
		Reason: "A format that nobody checks is a comment.",
	},
	{
		ID: "schema-pattern", Page: "Top level", Severity: Error,
		Title:  "A pattern that is not anchored, lists what is forbidden, or is not the same in every engine",
		Reason: "A pattern says what may stand there, from ^ to $, in the part of RE2 that ECMA 262 reads the same way. Look-ahead, look-behind and back references are not in RE2, which is what keeps a check from running for ever.",
	},
	{
		ID: "schema-pattern-cost", Page: "Top level", Severity: Error,
		Title:  "A pattern whose repetitions lie within each other",
		Reason: "A check of one long answer must not take seconds. Where one text can be read in more than 64 ways at the same place, each character costs as many steps; repetitions inside repetitions, or beside each other over the same characters, do that.",
	},
	{
		ID: "schema-type-beside-bound", Page: "Top level", Severity: Error,
		Title:  "A bound without the type that it binds",
		Reason: "maxLength binds only strings, maximum only numbers; anything else passes beside it.",
	},
	{
		ID: "schema-value", Page: "Top level", Severity: Error,
		Title:  "A keyword with a value that it does not take",
		Reason: "Engines skip what they cannot use.",
	},
	{
		ID: "schema-too-large", Page: "Top level", Severity: Error,
		Title:  "A schema that unfolds to more than can be reviewed",
		Reason: "References and branches multiply; so does the time of every check.",
	},
	{
		ID: "schema-compile", Page: "Top level", Severity: Error,
		Title:     "A schema that an engine does not take",
		Reason:    "Two engines check every value, so both must read the schema.",
		NoExample: "Both engines take whatever the other rules of schemas let through; no text is known that gets here.",
	},
	{
		ID: "schema-open-object", Page: "Top level", Severity: Error,
		Title:  "An object that may hold members nobody named",
		Reason: "What is not named is not reviewed: in an input it is a way in, in an answer a way out. Across $ref, allOf, oneOf, anyOf and if, unevaluatedProperties: false closes.",
	},
	{
		ID: "schema-untyped", Page: "Top level", Severity: Error,
		Title:  "A value without a type",
		Reason: "What says no type takes everything.",
	},
	{
		ID: "schema-unbounded-string", Page: "Top level", Severity: Error,
		Title:  "Text of any length",
		Reason: "Every text that an agent gives has an end.",
	},
	{
		ID: "schema-unbounded-array", Page: "Top level", Severity: Error,
		Title:  "A list of any length, or of anything",
		Reason: "Every list has an end, and a schema for what is in it.",
	},
	{
		ID: "schema-unbounded-number", Page: "Top level", Severity: Error,
		Title:  "A number of any size",
		Reason: "A number has a least and a most; what lies beyond was never meant.",
	},
	{
		ID: "result-free-text", Page: "Result and display", Severity: Error,
		Title:  "Free text in data",
		Reason: "Data is evidence that code acts on, and an agent reads it. Text that a sentence could stand in carries instructions from whoever wrote it; it belongs in display. Also in one branch of oneOf, beside an enum, or in a list.",
	},
	{
		ID: "result-map", Page: "Result and display", Severity: Error,
		Title:  "Data that names its own members",
		Reason: "A member's name is text of the answer as much as its value.",
	},
	{
		ID: "schema-unevaluated-items", Page: "Top level", Severity: Error,
		Title:  "unevaluatedItems that is a schema",
		Reason: "The engines do not agree about which elements it speaks of.",
	},
}
