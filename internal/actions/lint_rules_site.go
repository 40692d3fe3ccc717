package actions

// siteRules are what the loader asks of the operator's site file.
var siteRules = []Rule{
	{
		ID: "targets", Page: "Site file", Severity: Error,
		Title:  "More targets than a set may have",
		Reason: "A bound keeps a generated file from filling the daemon.",
	},
	{
		ID: "name", Page: "Site file", Severity: Error,
		Title:  "A name of a target, identity, list or key set that is none",
		Reason: "Names are written into records and cards; small letters, digits, hyphen, underscore and dot look alike nowhere.",
	},
	{
		ID: "url", Page: "Site file", Severity: Error,
		Title:  "A URL that no target can have",
		Reason: "A target is one https origin with a base path, written so that it can be compared: no user name, no query, no dots, no capital letters.",
	},
	{
		ID: "address", Page: "Site file", Severity: Error,
		Title:  "An address that a target must say it may have",
		Reason: "Loopback, private and metadata addresses reach what the network protects; the operator writes them out.",
	},
	{
		ID: "ca", Page: "Site file", Severity: Error,
		Title:  "A certificate authority that cannot be read",
		Reason: "Without its authority no connection to the target is right.",
	},
	{
		ID: "pin", Page: "Site file", Severity: Error,
		Title:  "A pin that is none, or only one",
		Reason: "A pin is sha256/ and base64 of the key's digest; the second is the spare that keeps a change of key from locking everybody out.",
	},
	{
		ID: "effects", Page: "Site file", Severity: Error,
		Title:  "A target with an empty list of effects",
		Reason: "A target that takes nothing is a slip; read is what it takes where nothing is written.",
	},
	{
		ID: "ask-missing", Page: "Site file", Severity: Error,
		Title:  "A target that takes changes and does not say how people are asked",
		Reason: "The operator, not the contract, knows which environment is routine.",
	},
	{
		ID: "identity", Page: "Site file", Severity: Error,
		Title:  "An identity with a part that is none",
		Reason: "A credential stands in one place that nothing else uses, and what a token is asked for with is written in one spelling, so that it can be compared with what was approved.",
	},
	{
		ID: "identity-target", Page: "Site file", Severity: Error,
		Title:  "An identity of a kind that its target cannot use",
		Reason: "An SSH key shows itself to no web server, and a token to no SSH server; a client certificate needs a TLS handshake.",
	},
	{
		ID: "identity-check", Page: "Site file", Severity: Error,
		Title:  "A check that cannot prove the identity, or does more than that",
		Reason: "A check is performed without a caller: it reads, needs no input, and goes only where the identity is used.",
	},
	{
		ID: "ssh-target", Page: "Site file", Severity: Error,
		Title:  "A host key or a command of an SSH target that is none",
		Reason: "A host is known by its keys alone; one that cannot be read, or that is too weak, would let in somebody else.",
	},
	{
		ID: "identity-unknown", Page: "Site file", Severity: Error,
		Title:  "An identity that the site file does not have",
		Reason: "A target answers as one named identity.",
	},
	{
		ID: "list", Page: "Site file", Severity: Error,
		Title:  "A list without names, or with a name that is none",
		Reason: "What an agent may say is what the operator wrote, in a form that fits a path.",
	},
	{
		ID: "keys", Page: "Site file", Severity: Error,
		Title:  "A key file that cannot be read or holds other than public keys",
		Reason: "A private key has no place where contracts lie, and half a key set proves nothing.",
	},
}
