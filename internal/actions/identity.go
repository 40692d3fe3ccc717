package actions

import (
	"maps"
	"slices"

	"chatelaine/internal/actions/strictyaml"
)

// The kinds of identity. Those from KindOAuth2Client to KindRegistryToken are
// exchanged for a token, which travels as bearer does; the last two belong to
// targets over SSH.
const (
	KindBearer            = "bearer"
	KindHeader            = "header"
	KindBasic             = "basic"
	KindNone              = "none"
	KindBody              = "body"
	KindClientCertificate = "client_certificate"
	KindOAuth2Client      = "oauth2_client"
	KindOAuth2Refresh     = "oauth2_refresh"
	KindGitHubApp         = "github_app"
	KindJWTBearer         = "jwt_bearer"
	KindRegistryToken     = "registry_token"
	KindSSHKey            = "ssh_key"
	KindSSHCertificate    = "ssh_certificate"
)

// IdentitySpec is what the site file says about an identity. The secret itself
// lies in the vault under the same name.
type IdentitySpec struct {
	name, kind         string
	headerName, prefix string
	username           string
	ask                Ask
	place              *Place
	params             map[string]string
	check              string
	checkPos           strictyaml.Pos
	hole               *holeSpec // nil where nothing goes into a body
	repositories       []string
	repositoriesFrom   string // what stands behind "target."
}

// Name returns the identity's name.
func (i *IdentitySpec) Name() string { return i.name }

// Kind returns one of the Kind constants.
func (i *IdentitySpec) Kind() string { return i.kind }

// HeaderName returns the canonical name of the header that carries the
// credential, or the token that it is exchanged for; "" for the kinds whose
// credential is in no header.
func (i *IdentitySpec) HeaderName() string { return i.headerName }

// Prefix returns what stands before the secret in the header's value
// ("Bearer " for bearer and for a token; "Basic " is part of the kind basic and
// not told here).
func (i *IdentitySpec) Prefix() string { return i.prefix }

// Username returns the user name of the kinds basic and registry_token.
func (i *IdentitySpec) Username() string { return i.username }

// Ask returns the identity's own word, zero where there is none.
func (i *IdentitySpec) Ask() Ask { return i.ask }

// Token returns where the secret is exchanged for a token, or where a
// certificate is signed; nil where the secret itself goes to the target, or
// never leaves.
func (i *IdentitySpec) Token() *Place { return i.place }

// Params returns the kind's own constants by their names in the site file, each
// in one canonical text, so that they can be sealed and compared whole:
//
//	body                json: the pointer; or form: the name
//	oauth2_client       client_id, scopes, auth (basic, body), audience, resource
//	oauth2_refresh      client_id, scopes, auth (basic, body, none)
//	github_app          app_id, installation, repositories, permissions
//	jwt_bearer          issuer, subject, audience, scopes, algorithm, key_id
//	registry_token      username, service, scopes
//	ssh_certificate     principals, valid, force_command (true)
//
// scopes and principals are sorted and divided by one space; permissions is
// canonical JSON of an object; repositories is canonical JSON, a sorted list of
// names or {"from":"target.NAME"}; valid is whole seconds in decimal. What was
// not written is absent, but for what has a default: auth and algorithm.
func (i *IdentitySpec) Params() map[string]string { return maps.Clone(i.params) }

// Exchanges says whether the secret is exchanged for a token that is sent in its
// place.
func (i *IdentitySpec) Exchanges() bool {
	switch i.kind {
	case KindOAuth2Client, KindOAuth2Refresh, KindGitHubApp, KindJWTBearer, KindRegistryToken:
		return true
	}
	return false
}

// Check returns the action that proves the identity, "" for none: one that
// reads, needs no input and goes to targets of this identity only.
func (i *IdentitySpec) Check() string { return i.check }

// Narrow is what one call needs of a token at most. The zero value narrows
// nothing.
type Narrow struct {
	ReadOnly     bool     // every permission to write becomes one to read
	Repositories []string // nil for all that the identity names
}

// Narrow says how far a token can be narrowed for one call. Only a github_app
// can be: to reading where the contract only reads, and to the repositories that
// the identity names, or to the one that the call's target names.
func (i *IdentitySpec) Narrow(c *Contract, r Route) Narrow {
	if i.kind != KindGitHubApp {
		return Narrow{}
	}
	n := Narrow{ReadOnly: c == nil || c.effect == Read, Repositories: slices.Clone(i.repositories)}
	if i.repositoriesFrom != "" {
		v, _ := r.With(i.repositoriesFrom)
		name, _ := v.(string)
		// The loader has seen that every route has it. Without it the one name is
		// the empty one, which GitHub refuses; no list would mean all of them.
		n.Repositories = []string{name}
	}
	return n
}

// authority is the digest of the private authority of the identity's place, ""
// where it has none.
func (i *IdentitySpec) authority() string {
	if i.place == nil {
		return ""
	}
	return i.place.caDigest
}

// placeKey is the key in the site file under which the identity's place stands.
func (i *IdentitySpec) placeKey() string {
	if i.kind == KindSSHCertificate {
		return "sign"
	}
	return "token"
}
