package actions

import (
	"maps"
	"slices"
)

// Target is one system that the operator allows, as the site file describes it.
// Its fields never come from a caller or from a contract.
type Target struct {
	name          string
	scheme, host  string
	port          int
	basePath      string // "" or "/a/b": no slash at the end
	identity      string
	actions       map[string]bool
	effects       []Effect
	ask           Ask // zero where the target takes reads only and says nothing
	identityAsk   Ask
	caFile        string
	caPEM         []byte
	caDigest      string
	pins          []string
	loopback      bool
	private       bool
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

// Scheme returns "https", or "http" for a loopback target.
func (t *Target) Scheme() string { return t.scheme }

// Host returns the host name or address, without port, in lower case.
func (t *Target) Host() string { return t.host }

// Port returns the TCP port, the scheme's own where none was written.
func (t *Target) Port() int { return t.port }

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

// CAFile returns the path of the certificate authority's file as written, ""
// for the system's roots.
func (t *Target) CAFile() string { return t.caFile }

// CAPEM returns the bytes of CAFile as they were when the set was loaded, nil
// for the system's roots.
func (t *Target) CAPEM() []byte { return slices.Clone(t.caPEM) }

// CADigest returns "sha256:" and the hex digest of CAPEM, "" for the system's
// roots.
func (t *Target) CADigest() string { return t.caDigest }

// Pins returns the pinned public keys ("sha256/BASE64"), none or at least two.
func (t *Target) Pins() []string { return slices.Clone(t.pins) }

// AllowLoopback says whether the target may lie on this machine.
func (t *Target) AllowLoopback() bool { return t.loopback }

// AllowPrivate says whether the target may lie in a private network.
func (t *Target) AllowPrivate() bool { return t.private }

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

// IdentitySpec is what the site file says about an identity. The secret itself
// lies in the vault under the same name.
type IdentitySpec struct {
	name, kind         string
	headerName, prefix string
	username           string
	ask                Ask
}

// The kinds of identity of this release.
const (
	KindBearer = "bearer"
	KindHeader = "header"
	KindBasic  = "basic"
	KindNone   = "none"
)

// Name returns the identity's name.
func (i *IdentitySpec) Name() string { return i.name }

// Kind returns one of the Kind constants.
func (i *IdentitySpec) Kind() string { return i.kind }

// HeaderName returns the canonical name of the header that carries the
// credential, "" for kind none.
func (i *IdentitySpec) HeaderName() string { return i.headerName }

// Prefix returns what stands before the secret in the header's value
// ("Bearer " for bearer; "Basic " is part of the kind basic and not told here).
func (i *IdentitySpec) Prefix() string { return i.prefix }

// Username returns the user name of kind basic.
func (i *IdentitySpec) Username() string { return i.username }

// Ask returns the identity's own word, zero where there is none.
func (i *IdentitySpec) Ask() Ask { return i.ask }
