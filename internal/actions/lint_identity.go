package actions

// identities remarks on a target whose identity takes whatever it can get.
func (l *linter) identities() {
	if l.s == nil {
		return
	}
	told := map[string]bool{}
	for _, name := range l.c.targets {
		t, ok := l.s.Target(name)
		if !ok || t.spec == nil || told[t.identity] {
			continue
		}
		told[t.identity] = true
		for _, w := range t.spec.wide() {
			l.say("identity-wide", l.at("route", ""), w.hint, "the identity %q of the target %q asks for %s", t.identity, name, w.all)
		}
	}
}

// widePart is one thing that an identity does not bound.
type widePart struct{ all, hint string }

// wide lists what the identity asks for without a bound. A refresh token is
// bounded by what was granted when the person signed in, and a token with an
// audience or a resource by that.
func (i *IdentitySpec) wide() []widePart {
	var out []widePart
	bare := i.params["scopes"] == ""
	switch i.kind {
	case KindOAuth2Client:
		if bare && i.params["audience"] == "" && i.params["resource"] == "" {
			out = append(out, widePart{"every scope that the service gives by itself", "the operator writes scopes there, or an audience"})
		}
	case KindJWTBearer:
		if bare {
			out = append(out, widePart{"every scope that the service gives by itself", "the operator writes scopes there"})
		}
	case KindGitHubApp:
		if i.params["permissions"] == "" {
			out = append(out, widePart{"every permission of its installation, also for reading", "the operator writes permissions there, such as {contents: read}"})
		}
		if i.params["repositories"] == "" {
			out = append(out, widePart{"every repository of its installation", "the operator writes repositories there, such as {from: target.repo}"})
		}
	}
	return out
}
