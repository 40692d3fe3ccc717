package actions

// fileRules are about any file here: the strict reader decides them.
var fileRules = []Rule{
	{
		ID: "file", Page: "Contract format v1", Severity: Error,
		Title:  "A file that cannot be read",
		Reason: "What is missing, no plain file or not to be read is never taken for an empty one.",
	},
	{
		ID: "size", Page: "Contract format v1", Severity: Error,
		Title:  "A file larger than any contract",
		Reason: "A bound keeps a wrong file from filling the machine, and nobody reviews a contract of this length.",
	},
	{
		ID: "empty", Page: "Contract format v1", Severity: Error,
		Title:  "A file without a value",
		Reason: "An empty file is a slip; taken for an empty set it would take everything away without a word.",
	},
	{
		ID: "encoding", Page: "Contract format v1", Severity: Error,
		Title:  "Bytes that are not UTF-8, or a byte order mark",
		Reason: "The same file must read the same in every editor and in every tool that reviews it.",
	},
	{
		ID: "tab", Page: "Contract format v1", Severity: Error,
		Title:  "A tab",
		Reason: "Editors show tabs at different widths, so that what looks indented may not be.",
	},
	{
		ID: "control", Page: "Contract format v1", Severity: Error,
		Title:  "A control character, or a line end that is none",
		Reason: "What a reviewer cannot see must not be in a file that a reviewer approves.",
	},
	{
		ID: "syntax", Page: "Contract format v1", Severity: Error,
		Title:  "Text that is no YAML",
		Reason: "Nothing is guessed about a file that cannot be read.",
	},
	{
		ID: "escape", Page: "Contract format v1", Severity: Error,
		Title:  "A broken escape in quotes",
		Reason: "Half of a surrogate pair is no character, and readers disagree about what it becomes.",
	},
	{
		ID: "document", Page: "Contract format v1", Severity: Error,
		Title:  "More than one document in a file",
		Reason: "A second document is read by some tools and skipped by others; here it would be skipped by the reviewer.",
	},
	{
		ID: "directive", Page: "Contract format v1", Severity: Error,
		Title:  "A YAML directive",
		Reason: "A directive changes how the rest is read.",
	},
	{
		ID: "anchor", Page: "Contract format v1", Severity: Error,
		Title:  "An anchor",
		Reason: "A value that stands elsewhere cannot be reviewed where it counts.",
	},
	{
		ID: "alias", Page: "Contract format v1", Severity: Error,
		Title:  "An alias",
		Reason: "A value that stands elsewhere cannot be reviewed where it counts.",
	},
	{
		ID: "merge-key", Page: "Contract format v1", Severity: Error,
		Title:  "A merge key",
		Reason: "Members that come from elsewhere cannot be reviewed where they count.",
	},
	{
		ID: "tag", Page: "Contract format v1", Severity: Error,
		Title:  "A tag",
		Reason: "A tag changes what a value is, differently in every reader.",
	},
	{
		ID: "key", Page: "Contract format v1", Severity: Error,
		Title:  "A key that is no text",
		Reason: "JSON has no such key, and readers spell it in different ways.",
	},
	{
		ID: "duplicate-key", Page: "Contract format v1", Severity: Error,
		Title:  "A key written twice",
		Reason: "One reader takes the first, another the last; the reviewer sees whichever comes first.",
	},
	{
		ID: "missing-value", Page: "Contract format v1", Severity: Error,
		Title:  "A key or an entry without a value",
		Reason: "Nothing written is not the same as null, and is mostly a slip of indentation.",
	},
	{
		ID: "number", Page: "Contract format v1", Severity: Error,
		Title:  "A number in a spelling that JSON does not have",
		Reason: "`012` is ten to one reader and twelve to another; only the spelling of JSON is taken.",
	},
	{
		ID: "scalar", Page: "Contract format v1", Severity: Error,
		Title:  "A plain word that only some readers take for a value",
		Reason: "`yes`, `~` and `.inf` are other values in other readers; JSON has null, true and false.",
	},
	{
		ID: "depth", Page: "Contract format v1", Severity: Error,
		Title:  "Values nested too deeply",
		Reason: "Nobody reviews forty levels, and parsers spend most on depth.",
	},
	{
		ID: "nodes", Page: "Contract format v1", Severity: Error,
		Title:  "More values than any contract has",
		Reason: "A bound keeps a wrong file from costing time at every load.",
	},
	{
		ID: "type", Page: "Contract format v1", Severity: Error,
		Title:  "A value of another kind",
		Reason: "`\"4\"` is not 4: nothing is converted on the way in.",
	},
	{
		ID: "unknown-key", Page: "Contract format v1", Severity: Error,
		Title:  "A key that the format does not have",
		Reason: "A misspelt key would otherwise say nothing where the author meant a limit.",
	},
	{
		ID: "missing-key", Page: "Contract format v1", Severity: Error,
		Title:  "A key that must be there",
		Reason: "Silence never grants and never guesses.",
	},
	{
		ID: "range", Page: "Contract format v1", Severity: Error,
		Title:  "A number or a length of time out of its bounds",
		Reason: "Every limit of a contract has a floor and a ceiling that a daemon can keep.",
	},
	{
		ID: "duration", Page: "Contract format v1", Severity: Error,
		Title:  "A text that is no length of time",
		Reason: "A number without a unit is read as seconds by one person and as milliseconds by another.",
	},
	{
		ID: "word", Page: "Contract format v1", Severity: Error,
		Title:  "A word that is none of the known ones",
		Reason: "A closed list of words leaves nothing to guess.",
	},
	{
		ID: "repeated", Page: "Site file", Severity: Error,
		Title:  "The same entry twice",
		Reason: "Twice the same is a slip, and the reviewer cannot know which was meant.",
	},
	{
		ID: "not-in-this-release", Page: "Not in this release", Severity: Error,
		Title:  "A part of the format that this release does not take",
		Reason: "What is not built is refused by name, never read half.",
	},
}
