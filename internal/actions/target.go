package actions

import (
	"maps"
	"slices"
)

// Target is one system that the operator allows, as the site file describes it.
// Its fields never come from a caller or from a contract.
type Target struct {
	endpoint      // basePath is "" or "/a/b": no slash at the end
	name          string
	ssh           *SSHPlace // nil for one over HTTPS
	identity      string
	spec          *IdentitySpec // what identity names; nil where the file does not have it
	actions       map[string]bool
	effects       []Effect
	ask           Ask // zero where the target takes reads only and says nothing
	identityAsk   Ask
	http2         bool
	keepsSlash    bool
	headers       map[string]string
	versionHeader map[string]bool // canonical names
	readByPost    map[string]bool
	with          map[string]any
	digest        [32]byte
}

// Name returns the target's name in the site file.
func (t *Target) Name() string { return t.name }

// BasePath returns the path that every request stays under: "" or "/a/b".
func (t *Target) BasePath() string { return t.basePath }

// Identity returns the name of the identity that is used at this target.
func (t *Target) Identity() string { return t.identity }

// AllowsAction says whether the operator lets this action route here.
func (t *Target) AllowsAction(action string) bool { return t.actions[action] }

// Actions returns the allowed actions in alphabetical order.
func (t *Target) Actions() []string { return slices.Sorted(maps.Keys(t.actions)) }

// Effects returns what the target takes at most.
func (t *Target) Effects() []Effect { return slices.Clone(t.effects) }

// AllowsEffect says whether the target takes this effect.
func (t *Target) AllowsEffect(e Effect) bool { return slices.Contains(t.effects, e) }

// Ask returns what the operator wrote; the zero value where a target that only
// takes reads says nothing.
func (t *Target) Ask() Ask { return t.ask }

// HTTP2 says whether the operator switched HTTP/2 on.
func (t *Target) HTTP2() bool { return t.http2 }

// Headers returns the operator's constant headers, sent with every step.
func (t *Target) Headers() map[string]string { return maps.Clone(t.headers) }

// Digest covers everything the site file says about the target, and the bytes
// of its certificate authority.
func (t *Target) Digest() [32]byte { return t.digest }

// Const returns one of the operator's constants for this target; path is what
// stands behind "target.", members are divided by dots.
func (t *Target) Const(path string) (any, bool) { return walkPath(t.with, path) }

// hole is where the target's identity goes in a body, nil where it goes
// elsewhere.
func (t *Target) hole() *holeSpec {
	if t.spec == nil {
		return nil
	}
	return t.spec.hole
}
