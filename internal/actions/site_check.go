package actions

import (
	"path/filepath"
	"slices"

	"chatelaine/internal/actions/strictyaml"
)

// proofs holds the `check` of every identity to the contracts of the set, once
// they are read: a proof sends something, so it only reads, asks for nothing and
// goes nowhere else. dirs are all contract folders, also those that do not load.
func (s *site) proofs(contracts map[string]*Contract, dirs []string) {
	for _, id := range sortedValues(s.identities) {
		if id.check == "" {
			continue
		}
		c := contracts[id.check]
		if c == nil {
			s.noProof(id, dirs)
			continue
		}
		s.proof(id, c)
	}
}

func (s *site) noProof(id *IdentitySpec, dirs []string) {
	var names []string
	for _, dir := range dirs {
		names = append(names, filepath.Base(dir))
	}
	if s.elsewhere || slices.Contains(names, id.check) {
		return // it is not here, or it does not load and says why
	}
	hint := strictyaml.DidYouMean(id.check, names)
	if hint == "" {
		hint = "name the folder of a contract that reads"
	}
	s.bad(id.checkPos, "identity-check", hint, "there is no action %q to check the identity %q with", id.check, id.name)
}

// proof says everything that is wrong with one action as a proof.
func (s *site) proof(id *IdentitySpec, c *Contract) {
	if c.effect != Read {
		s.bad(id.checkPos, "identity-check", "name an action of effect read", "the action %s does not only read: its effect is %s", c.action, c.effect)
	}
	if _, err := c.ParseInput(map[string]any{}); err != nil {
		s.bad(id.checkPos, "identity-check", "name an action without a required input", "the action %s needs an input, and a check has none to give", c.action)
		return // its route may depend on the input
	}
	for _, k := range c.route.cases {
		t := s.targets[k.target]
		switch {
		case t == nil:
			// refused, and told already
		case t.identity != id.name:
			s.bad(id.checkPos, "identity-check", "name an action that goes to a target of this identity", "the action %s goes to the target %q, whose identity is %q", c.action, t.name, t.identity)
		case !t.AllowsAction(c.action):
			s.bad(id.checkPos, "identity-check", "list the action there", "the target %q does not list the action %s, so that no check could be made", t.name, c.action)
		}
	}
}
