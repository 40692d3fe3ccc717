package actions

// contractRules are what the loader asks of a contract.
var contractRules = []Rule{
	{
		ID: "action", Page: "Top level", Severity: Error,
		Title:  "An action whose name is not its folder's",
		Reason: "The name is what agents call, what targets list and what the record keeps; there is one of it.",
	},
	{
		ID: "version", Page: "Top level", Severity: Error,
		Title:  "A version that is no semantic version",
		Reason: "The three numbers tell whether a change breaks a caller.",
	},
	{
		ID: "text", Page: "Top level", Severity: Error,
		Title:  "A line that is empty, too long or not one visible line",
		Reason: "What people and agents read fits its place and hides nothing.",
	},
	{
		ID: "input", Page: "Top level", Severity: Error,
		Title:  "An input that is no object, or requires what it does not have",
		Reason: "An action takes named values; a required name without a property could never be right.",
	},
	{
		ID: "input-name", Page: "Values", Severity: Error,
		Title:  "An input with the name of an authority",
		Reason: "An agent says facts of the task. Where a call goes, as whom and what runs there is written by the author or the operator, so no input is called url, host, header, method, path, command, args, flags, credential, token, account, profile, region, proxy, script or query, in any case style.",
	},
	{
		ID: "result", Page: "Top level", Severity: Error,
		Title:  "A result that is no object",
		Reason: "Data has named members, so that a later one can be added without breaking a caller.",
	},
	{
		ID: "failures", Page: "Top level", Severity: Error,
		Title:  "A code that is none of the author's own",
		Reason: "The codes of the API mean the same for every action; an author names only new ones.",
	},
	{
		ID: "exception", Page: "Top level", Severity: Error,
		Title:  "An exception that names no lint rule, or one twice",
		Reason: "What the loader refuses is unsafe and cannot be set aside; only what the lint says can, once, with a reason.",
	},
	{
		ID: "effect-method", Page: "Top level", Severity: Error,
		Title:  "A method that does not fit the effect",
		Reason: "An action that says it reads must not be able to change anything, and DELETE destroys.",
	},
	{
		ID: "read-by-post", Page: "Top level", Severity: Error,
		Title:  "A POST that reads, at a path the operator has not listed",
		Reason: "Only the operator knows that a POST there changes nothing.",
	},
	{
		ID: "identity-body", Page: "Site file", Severity: Error,
		Title:  "A step that has no free place for an identity in the body",
		Reason: "An identity of kind body is sent inside the body of every step. A step without one, or one that writes that member itself, would go out without it, or with somebody else's word for it.",
	},
	{
		ID: "effect-ceiling", Page: "Top level", Severity: Error,
		Title:  "A target that does not take the effect",
		Reason: "The operator says the most that a target takes; a contract above it is not loaded.",
	},
	{
		ID: "value", Page: "Values", Severity: Error,
		Title:  "A function with too few or too many values",
		Reason: "A function does one thing with the values it takes; nothing is filled in.",
	},
	{
		ID: "value-path", Page: "Values", Severity: Error,
		Title:  "A value that nobody declared",
		Reason: "A path that leads nowhere would send nothing where the author meant something.",
	},
	{
		ID: "value-optional", Page: "Values", Severity: Error,
		Title:  "A value that may be absent where one is needed",
		Reason: "What to send without it is the author's word: optional: true leaves the member out.",
	},
	{
		ID: "value-type", Page: "Values", Severity: Error,
		Title:  "A value of another kind than its place needs",
		Reason: "There is no silent conversion; {text: …} makes text of a number where that is meant.",
	},
	{
		ID: "value-time", Page: "Values", Severity: Error,
		Title:  "add_seconds with what is no time or no bounded number",
		Reason: "A time is worked out for every call or for none.",
	},
	{
		ID: "input-member", Page: "A step over HTTP", Severity: Error,
		Title:  "An input in a member that the remote system runs or follows",
		Reason: "A member called query, script, command, sql, expression, template, url, callback or the like holds a program or a place; an agent writes neither, not as a part, not at any depth. Nor does it write `sudo` or `_method`.",
	},
	{
		ID: "refused-member", Page: "A step over HTTP", Severity: Error,
		Title:  "A query or form key that changes what a request is",
		Reason: "`_method` and `sudo` turn a request into another one, or make it somebody else's.",
	},
	{
		ID: "route", Page: "Route", Severity: Error,
		Title:  "A route that is none of the three kinds, or goes by what is no required enum",
		Reason: "Where a call goes is chosen from what the author or the operator wrote down, never from text.",
	},
	{
		ID: "route-case", Page: "Route", Severity: Error,
		Title:  "A combination of inputs with no case, or with two",
		Reason: "Every call that the input allows goes to exactly one target.",
	},
	{
		ID: "target-unknown", Page: "Route", Severity: Error,
		Title:  "A target that the site file does not have",
		Reason: "Targets are the operator's; a contract only names them.",
	},
	{
		ID: "list-unknown", Page: "Route", Severity: Error,
		Title:  "A list that the site file does not have",
		Reason: "The names of a list route are the operator's.",
	},
	{
		ID: "with", Page: "Route", Severity: Error,
		Title:  "A constant of the operator's with a bad name or value, or one written twice",
		Reason: "A constant that stands both in the route and at the target has two values.",
	},
	{
		ID: "path", Page: "A step over HTTP", Severity: Error,
		Title:  "A path that is no plain path",
		Reason: "Paths are compared byte by byte with what the author wrote: no empty or dot segments, no escapes, no query, one kind of placeholder.",
	},
	{
		ID: "path-input", Page: "A step over HTTP", Severity: Error,
		Title:  "An input in a path that may hold more than a name",
		Reason: "Reject, do not escape: an input in a path has an enum, a bounded whole number or an anchored pattern over letters, digits, dot, underscore and hyphen, so that it can neither leave its segment nor mean another one.",
	},
	{
		ID: "path-folder", Page: "A step over HTTP", Severity: Error,
		Title:  "An input with slashes that stands in no constant folder",
		Reason: "A whole path chosen by the agent is a choice of endpoint; the first folder is the author's.",
	},
	{
		ID: "escaped-slash", Page: "A step over HTTP", Severity: Error,
		Title:  "A %2F at a target that may take it for a slash",
		Reason: "Many servers read %2F as /, which moves a value into the next segment; only the operator knows that this one does not.",
	},
	{
		ID: "query", Page: "A step over HTTP", Severity: Error,
		Title:  "A query with a value that a URL cannot carry",
		Reason: "A query value is one plain value or a list of them; what an object or a null would become differs between servers.",
	},
	{
		ID: "header", Page: "A step over HTTP", Severity: Error,
		Title:  "A header without a proper name, or written twice",
		Reason: "Two lines of one header are joined by one server and dropped by another.",
	},
	{
		ID: "header-refused", Page: "A step over HTTP", Severity: Error,
		Title:  "A header that a contract may not set",
		Reason: "Headers name the host, the caller and the method, and carry the credential; a contract sets only those on a short list, or that the target names.",
	},
	{
		ID: "header-value", Page: "A step over HTTP", Severity: Error,
		Title:  "A header with an input or with hidden characters",
		Reason: "No agent writes a header: one line break there is another header.",
	},
	{
		ID: "body", Page: "A step over HTTP", Severity: Error,
		Title:  "A body that does not fit its method or media type",
		Reason: "A request has one body, written once, in the media type that it says.",
	},
	{
		ID: "form", Page: "A step over HTTP", Severity: Error,
		Title:  "A form key that is empty or holds brackets",
		Reason: "Keys in brackets are made from nested keys, so that nobody can write one that means another.",
	},
	{
		ID: "text-body", Page: "A step over HTTP", Severity: Error,
		Title:  "Free text in a text body with a grammar",
		Reason: "In XML or CSV a caller's text could end the value it stands in and begin another.",
	},
	{
		ID: "outcome", Page: "Outcomes", Severity: Error,
		Title:  "A row that could not be used",
		Reason: "A row reads only what its media has, and something must be a success.",
	},
	{
		ID: "outcome-status", Page: "Outcomes", Severity: Error,
		Title:  "A status that is no exact number, or stands twice",
		Reason: "A range would take in answers that nobody has seen.",
	},
	{
		ID: "lookup", Page: "Top level", Severity: Error,
		Title:  "Lookups without a step, or with a name that is taken",
		Reason: "A lookup's name is the first word of the paths to what it found, so that it must be its own.",
	},
	{
		ID: "poll", Page: "Outcomes", Severity: Error,
		Title:  "A poll that no call comes to, or that never asks again",
		Reason: "A row of the request with capture leads to the poll, and within is longer than every.",
	},
	{
		ID: "capture", Page: "Values", Severity: Error,
		Title:  "A captured value that may be anything",
		Reason: "What an answer said is sent on only where the row that captured it says its type and its bounds.",
	},
	{
		ID: "reconcile", Page: "Outcomes", Severity: Error,
		Title:  "A `took_effect: true` that may be about another thing",
		Reason: "An answer about something else would end the call as done. Everything that names the thing is asked for or compared, and always something of the call. What is compared with one element of a list says nothing about another one that is picked: count one, or find the element by it.",
	},
	{
		ID: "outcome-step", Page: "Outcomes", Severity: Error,
		Title:  "A row with a key that its step does not have",
		Reason: "Only a lookup and a request go on, only a poll waits, only a reconcile tells what took effect.",
	},
	{
		ID: "outcome-overlap", Page: "Outcomes", Severity: Error,
		Title:  "Two rows for one status, one of them without `when`",
		Reason: "Exactly one row must match; two are an invalid answer.",
	},
	{
		ID: "outcome-end", Page: "Outcomes", Severity: Error,
		Title:  "A row without an end, or with two",
		Reason: "A row says what the answer means: success or failure, one of them.",
	},
	{
		ID: "failure-code", Page: "Outcomes", Severity: Error,
		Title:  "A code that a row may not give",
		Reason: "A code tells the caller whether to ask again; after a change only proof that nothing was done may say so.",
	},
	{
		ID: "predicate", Page: "Outcomes", Severity: Error,
		Title:  "A predicate that is none of the known ones, or with the wrong values",
		Reason: "Predicates are a closed list, each with its own values; nothing is evaluated.",
	},
	{
		ID: "pointer", Page: "Outcomes", Severity: Error,
		Title:  "A text that is no JSON pointer",
		Reason: "A pointer leads to one place or to none, never to a pattern.",
	},
	{
		ID: "pick", Page: "Picks", Severity: Error,
		Title:  "A pick that begins with none of the known ways, or with two",
		Reason: "A value is picked from one place by a closed list of steps.",
	},
	{
		ID: "pick-unknown", Page: "Picks", Severity: Error,
		Title:  "A pick for a member that is not declared",
		Reason: "What leaves is listed in result and display; a pick beside them would let more out.",
	},
	{
		ID: "pick-missing", Page: "Picks", Severity: Error,
		Title:  "A required member of the result that is not picked",
		Reason: "Every success has all that the result requires.",
	},
	{
		ID: "pick-not-there", Page: "Picks", Severity: Error,
		Title:  "A pick of a member that `expect` does not let through",
		Reason: "The member is never there: the answer is always refused, or the value always left out.",
	},
	{
		ID: "pick-never", Page: "Picks", Severity: Error,
		Title:  "A pick that no value gets through",
		Reason: "A conversion that reads another kind of value, or a result that takes another, refuses every answer.",
	},
	{
		ID: "pick-input", Page: "Picks", Severity: Error,
		Title:  "The agent's own words as evidence",
		Reason: "What the agent said is no proof that the remote system did it.",
	},
	{
		ID: "pattern", Page: "Picks", Severity: Error,
		Title:  "A pattern in a pick that is not anchored or not portable",
		Reason: "See schema-pattern; the same holds where a pick matches.",
	},
	{
		ID: "display", Page: "Result and display", Severity: Error,
		Title:  "A display text with a bad name",
		Reason: "Names of display texts are members of the answer: small letters, digits and underscore.",
	},
	{
		ID: "check", Page: "Checks", Severity: Error,
		Title:  "A check that could not hold, or compares nothing of the result",
		Reason: "A check is about what was answered.",
	},
	{
		ID: "keys-unknown", Page: "Checks", Severity: Error,
		Title:  "Keys for signatures that the site file does not have",
		Reason: "Whose signature counts is the operator's word.",
	},
	{
		ID: "once", Page: "Doing it once", Severity: Error,
		Title:  "A change that does not say how it is done once",
		Reason: "A lost answer leaves open whether it happened. Every change has idempotency, reconcile, confirm: required or at_most_once.",
	},
	{
		ID: "idempotency", Page: "Doing it once", Severity: Error,
		Title:  "An idempotency that cannot work",
		Reason: "One key, in one place that the author leaves free, or a reason why a repeat is the same.",
	},
	{
		ID: "retry", Page: "Doing it once", Severity: Error,
		Title:  "A retry that may do a change twice, or retries nothing",
		Reason: "Only a read, or a change with idempotency, may be sent again.",
	},
	{
		ID: "approval", Page: "Approval", Severity: Error,
		Title:  "A change without a sentence, or a sentence with what it may not hold",
		Reason: "A person approves a sentence made of the author's words, inputs and the operator's constants.",
	},
}
