package actions

// lintRules are decided by the lint about a contract that loads. These, and only
// these, may be set aside with an exception.
var lintRules = []Rule{
	{
		ID: "fixtures", Page: "Fixtures", Severity: Error,
		Title:  "A kind of fixture is missing",
		Reason: "An accepted answer, a near miss and a failure show what the contract takes and what it refuses; without them nobody has tried.",
	},
	{
		ID: "fixture-not-done", Page: "Outcomes", Severity: Error,
		Title:  "A row that says nothing was done, and no fixture shows it",
		Reason: "not_done makes a caller send a change again; that the service promises it must be shown by one of its answers.",
	},
	{
		ID: "sentence-selects", Page: "Approval", Severity: Error,
		Title:  "A sentence that leaves out what chooses the target",
		Reason: "Who approves must read where it goes.",
	},
	{
		ID: "input-not-shown", Page: "Approval", Severity: Error,
		Title:  "An input of a change that nobody is shown",
		Reason: "An approval covers exactly what was shown.",
	},
	{
		ID: "result-not-bound", Page: "Checks", Severity: Error,
		Title:  "A member of the result with an input's name that is not compared with it",
		Reason: "An answer about something else would pass as the answer to what was asked.",
	},
	{
		ID: "expect-missing", Page: "Outcomes", Severity: Error,
		Title:  "A success that reads a body no schema describes",
		Reason: "An answer that nobody described is accepted whatever else stands in it, an error beside the data too.",
	},
	{
		ID: "code-unused", Page: "Top level", Severity: Warning,
		Title:  "A declared code that no row gives",
		Reason: "Callers write code for it, and it never comes.",
	},
	{
		ID: "target-not-listed", Page: "Site file", Severity: Warning,
		Title:  "A routed target does not list the action",
		Reason: "A call that would go there is refused until the operator lists it; where no target lists the action, every call is.",
	},
	{
		ID: "identity-wide", Page: "Site file", Severity: Warning,
		Title:  "An identity that asks for all that it can get",
		Reason: "A token without scopes, permissions or repositories may do what the service gives by default, today and tomorrow. Written out, it is what the operator has seen, and a wider one asks again.",
	},
	{
		ID: "exception-unused", Page: "Top level", Severity: Warning,
		Title:  "An exception that sets nothing aside",
		Reason: "An exception that stands for nothing hides the next finding.",
	},
	{
		ID: "signed-not-bound", Page: "Checks", Severity: Error,
		Title:  "A signature that is not about this call",
		Reason: "A signature says who said it; an old statement about something else is signed just as well.",
	},
	{
		ID: "input-suspect-name", Page: "Values", Severity: Error,
		Title:  "Free text under the name of an authority",
		Reason: "A name such as server, domain, namespace, recipient, password, user, role, sql or template promises a place, an identity or a program: under it any text that fits reaches whatever our identity may reach. The name may be the input's own, or, but for user, that of the member in which it is sent. With an enum, or a list of the operator's, the values are not the agent's and the name is only a name. An input that says whom a task is about has a better name: assignee, author, customer.",
	},
	{
		ID: "input-names-members", Page: "A step over HTTP", Severity: Error,
		Title:  "An input that names members itself",
		Reason: "With patternProperties the agent chooses the names of members, and so which member of the request it writes.",
	},
	{
		ID: "path-free", Page: "A step over HTTP", Severity: Error,
		Title:  "A path whose first folder the agent chooses",
		Reason: "The first segment names the endpoint. It is the author's, the operator's, or one of an enum.",
	},
	{
		ID: "input-in-grammar", Page: "Values", Severity: Error,
		Title:  "Free text inside an expression",
		Reason: "Between the author's operators a caller's text can end its own term and begin another one: a filter is a small program. Give the input an enum or a pattern over letters, digits, dot, underscore and hyphen, or send it as a value of its own.",
	},
	{
		ID: "outcome-never", Page: "Outcomes", Severity: Error,
		Title:  "A row that no answer can match",
		Reason: "A `when` that contradicts itself, a status that has no body, or a row that another one always matches too: two rows are an invalid answer, so this one never counts.",
	},
	{
		ID: "outcome-twice", Page: "Outcomes", Severity: Error,
		Title:  "An answer that two rows match",
		Reason: "Exactly one row must match. A value that stands in both makes every answer with it invalid.",
	},
	{
		ID: "outcome-expect", Page: "Outcomes", Severity: Error,
		Title:  "A row whose `expect` contradicts its `when`",
		Reason: "The row would be chosen and then always refused.",
	},
	{
		ID: "result-in-pieces", Page: "Result and display", Severity: Error,
		Title:  "Free text in small pieces",
		Reason: "Many short words are a text too. All strings of one answer that may hold words, lists multiplied by their length, stay below 1,024 characters, a list of pieces of at most 8 characters below 128; give them an enum, a narrower pattern or a smaller maxItems, or put the text under display.",
	},
	{
		ID: "text-instructs", Page: "Top level", Severity: Error,
		Title:  "A text that an agent could take for an instruction",
		Reason: "Summaries, messages, descriptions and names reach an agent as part of what it reads before it acts. They say what is so, never what to do: no “you”, no “must call”, no “ignore”, no talk of prompts, systems or assistants.",
	},
	{
		ID: "text-markup", Page: "Top level", Severity: Error,
		Title:  "A text with an address or markup",
		Reason: "A URL in a summary is a place an agent may go, and markup may be taken for the words of somebody else.",
	},
	{
		ID: "envelope-open", Page: "Result and display", Severity: Error,
		Title:     "An envelope that is not closed and bounded",
		Reason:    "What leaves to an agent is closed at every level, the part that the daemon writes too.",
		NoExample: "The daemon writes the envelope itself; the rule holds its own part to what it asks of others.",
	},
	{
		ID: "poll-not-bound", Page: "Outcomes", Severity: Error,
		Title:  "A poll of a change whose success may be about another one",
		Reason: "A poll that asks only how the service stands takes the end of somebody else's change for this one's. It asks for what the request's answer named, or compares the answer with that, with the call's id, with what a lookup found or with an input.",
	},
	{
		ID: "capture-unused", Page: "Outcomes", Severity: Warning,
		Title:  "A captured value that nothing reads",
		Reason: "What is captured is shown, frozen and recorded; what nobody needs is a slip, mostly a misspelt name.",
	},
	{
		ID: "input-laundered", Page: "Values", Severity: Error,
		Title:  "An input that comes back through an answer to where it may not stand",
		Reason: "A service that repeats what it was sent makes the agent's word look like its own. A captured value that stands in the answer under the name under which an input was sent is taken for that input: in a header, in a path that the input may not be in, and as evidence.",
	},
	{
		ID: "host-in-contract", Page: "Site file", Severity: Warning,
		Title:  "An address in what is sent",
		Reason: "A contract never names a host: where things go is the operator's word, and the same contract serves a test system and the real one.",
	},
	{
		ID: "secret-in-contract", Page: "Site file", Severity: Error,
		Title:  "Something that looks like a credential",
		Reason: "A contract is read by everybody who reviews it, and its digest is in the record. Credentials lie in the vault and are put on at the last hop.",
	},
	{
		ID: "natural-compare", Page: "Doing it once", Severity: Error,
		Title:  "A compare-and-set that calls itself repeatable by nature",
		Reason: "natural means the same effect and the same answer. A request that compares first is refused when it is repeated after it worked, and the refusal would be taken for a failure.",
	},
	{
		ID: "text-hidden", Page: "Top level", Severity: Error,
		Title:  "A published text with characters that nobody sees",
		Reason: "Control, invisible and bidirectional characters let an agent read what the reviewer did not: in a remark or a value of a schema as much as in a summary.",
	},
	{
		ID: "text-long", Page: "Top level", Severity: Warning,
		Title:  "A remark in a schema that is a page",
		Reason: "Schemas are published with their remarks, and an agent reads all of it before every call. What a caller must know about a value fits into 300 characters.",
	},
}
