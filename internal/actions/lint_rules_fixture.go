package actions

// fixtureRules are what the reader of fixtures asks, besides those of any file.
var fixtureRules = []Rule{
	{
		ID: "fixture-kind", Page: "Fixtures", Severity: Error,
		Title:  "A fixture whose file name does not begin with its kind",
		Reason: "The kinds are counted: accepted, near-miss, failure, hostile.",
	},
	{
		ID: "exclusive", Page: "Fixtures", Severity: Error,
		Title:  "Two keys of which one excludes the other",
		Reason: "A success has no code and a failure no data; what was meant cannot be known.",
	},
	{
		ID: "unreachable", Page: "Fixtures", Severity: Error,
		Title:  "An answer after one that is repeated",
		Reason: "It would never be given, and prove nothing.",
	},
	{
		ID: "time", Page: "Fixtures", Severity: Error,
		Title:  "A time that is no RFC 3339 time",
		Reason: "Checks of freshness depend on it.",
	},
	{
		ID: "ssh", Page: "Fixtures", Severity: Error,
		Title:  "A key of a step over SSH",
		Reason: "This release does not play such steps.",
	},
	{
		ID: "fixture-folder", Page: "Fixtures", Severity: Error,
		Title:  "A fixture in a folder that nothing reads",
		Reason: "What is never played proves nothing. Fixtures lie in fixtures/, those of an old upstream shape in a folder v1, v2 … below.",
	},
	{
		ID: "jws", Page: "Fixtures", Severity: Error,
		Title:  "A signed text that stands nowhere, or a place without one",
		Reason: "A fixture that should show a signature would show an answer without one.",
	},
}
