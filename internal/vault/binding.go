package vault

import (
	"maps"
	"slices"
	"strings"
)

// Kinds of identity. None is not stored; see NoLease.
const (
	KindBearer            = "bearer"
	KindHeader            = "header"
	KindBasic             = "basic"
	KindBody              = "body"
	KindClientCertificate = "client_certificate"
	KindOAuth2Client      = "oauth2_client"
	KindOAuth2Refresh     = "oauth2_refresh"
	KindGitHubApp         = "github_app"
	KindJWTBearer         = "jwt_bearer"
	KindRegistryToken     = "registry_token"
	KindSSHKey            = "ssh_key"
	KindSSHCertificate    = "ssh_certificate"
	KindNone              = "none"
)

// schemeSSH is the scheme of a binding to an SSH server. Nothing else has it.
const schemeSSH = "ssh"

// minSecret is the length below which a secret must be said to be short: shorter
// ones can be guessed, and are hard to search for in an answer.
const minSecret = 16

// Binding says how an identity's secret is applied and to which destination
// alone. It is written with the secret and sealed with it; a site file may
// narrow it, never widen it.
type Binding struct {
	Kind     string // one of the kinds above but KindNone
	Header   string // KindHeader: the header's name
	Prefix   string // KindHeader: put before the secret
	Username string // KindBasic: the name before the colon

	Scheme   string // "https", or "http" for a loopback host; "ssh" for the SSH kinds
	Host     string // as the target names it, in lower case
	Port     int
	BasePath string   // "" or a path that begins with "/"
	CADigest string   // of the target's own roots, "" for the system's
	Pins     []string // public key pins, empty where the target has none

	// Params are the kind's own constants, sorted by name; see kindRules.
	Params []Param
	// Token is where the secret itself goes, nil where it goes to the target. What
	// it is exchanged for goes to the destination above.
	Token *Place
	// User and HostKeys are for the SSH kinds: the account, and the keys that the
	// server may show, each as in an authorized_keys file, without a comment.
	User     string
	HostKeys []string
}

// Param is one constant of a kind, in its one spelling.
type Param struct{ Name, Value string }

// Place is a fixed HTTPS destination beside the target.
type Place struct {
	Scheme, Host string
	Port         int
	Path         string // "" or a path that begins with "/"
	CADigest     string // of the place's own roots, "" for the system's
	Pins         []string
}

// Made is the connection that was really made, as the executor saw it.
type Made struct {
	Scheme, Host string
	Port         int
	BasePath     string
	CADigest     string
	Pins         []string // the pins that the connection was checked against
	PeerSPKI     []string // the public keys of the verified chain, in the form of the pins
}

// MadeSSH is an SSH connection whose server has shown that it holds HostKey;
// nobody is logged in yet.
type MadeSSH struct {
	Address string // host:port, an IPv6 address in brackets
	User    string
	HostKey string // as in an authorized_keys file, without a comment
}

// ParamsOf gives the constants of a site file the order of a binding.
func ParamsOf(m map[string]string) []Param {
	var out []Param
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, Param{name, m[name]})
	}
	return out
}

// Param returns one constant, "" where the binding has none of that name.
func (b Binding) Param(name string) string {
	for _, p := range b.Params {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

// Exchanges says whether the secret is exchanged for a token at Token.
func (b Binding) Exchanges() bool { return kindRules[b.Kind].exchanges }

// normal gives a binding its one spelling before it is checked and kept.
func (b Binding) normal() Binding {
	b = b.clone()
	b.Host = strings.ToLower(b.Host)
	b.BasePath = strings.TrimSuffix(b.BasePath, "/")
	slices.Sort(b.Pins)
	slices.Sort(b.HostKeys)
	slices.SortFunc(b.Params, func(x, y Param) int { return strings.Compare(x.Name, y.Name) })
	if b.Token != nil {
		b.Token.Host = strings.ToLower(b.Token.Host)
		slices.Sort(b.Token.Pins)
	}
	return b
}

// clone gives callers lists of their own.
func (b Binding) clone() Binding {
	b.Pins, b.HostKeys, b.Params = slices.Clone(b.Pins), slices.Clone(b.HostKeys), slices.Clone(b.Params)
	if b.Token != nil {
		t := *b.Token
		t.Pins = slices.Clone(t.Pins)
		b.Token = &t
	}
	return b
}
