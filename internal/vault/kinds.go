package vault

import (
	"fmt"
	"slices"
	"strings"
)

// kindRule says what a binding of one kind has and what its secret is.
type kindRule struct {
	form      secretForm
	needs     []string // constants that must be there
	takes     []string // constants that may be there
	oneOf     []string // exactly one of these must be there
	token     tokenRule
	exchanges bool // the secret is exchanged for a token
	ssh       bool // the destination is an SSH server
}

// secretForm is what the secret of a kind looks like.
type secretForm int

const (
	formHeader      secretForm = iota // text that a header can hold
	formText                          // a line of text
	formBody                          // any text
	formGrant                         // a refresh token, perhaps with its client's secret
	formKey                           // a private key, PEM
	formCertificate                   // a certificate chain and its private key, PEM
	formSSHKey                        // a private key of OpenSSH, PEM
)

// tokenRule says whether a kind has a place of its own for its secret.
type tokenRule int

const (
	tokenNone tokenRule = iota
	tokenMay
	tokenMust
)

// kindRules is every kind that can be stored. The names of the constants are
// those of the site file.
var kindRules = map[string]kindRule{
	KindBearer:            {form: formHeader},
	KindHeader:            {form: formHeader},
	KindBasic:             {form: formText},
	KindBody:              {form: formBody, oneOf: []string{"json", "form"}},
	KindClientCertificate: {form: formCertificate},
	KindOAuth2Client:      {form: formText, needs: []string{"client_id"}, takes: []string{"scopes", "auth", "audience", "resource"}, token: tokenMust, exchanges: true},
	KindOAuth2Refresh:     {form: formGrant, needs: []string{"client_id"}, takes: []string{"scopes", "auth"}, token: tokenMust, exchanges: true},
	KindGitHubApp:         {form: formKey, needs: []string{"app_id", "installation"}, takes: []string{"repositories", "permissions"}, token: tokenMust, exchanges: true},
	KindJWTBearer:         {form: formKey, needs: []string{"issuer"}, takes: []string{"subject", "audience", "scopes", "algorithm", "key_id"}, token: tokenMust, exchanges: true},
	KindRegistryToken:     {form: formText, takes: []string{"username", "service", "scopes"}, token: tokenMust, exchanges: true},
	KindSSHKey:            {form: formSSHKey, ssh: true},
	KindSSHCertificate:    {form: formSSHKey, needs: []string{"principals", "valid"}, takes: []string{"force_command"}, token: tokenMay, ssh: true},
}

// formOf is what the secret must look like: the certificate kind holds the CA's
// key, or a token where something else signs.
func (b Binding) formOf() secretForm {
	if b.Kind == KindSSHCertificate && b.Token != nil {
		return formHeader
	}
	return kindRules[b.Kind].form
}

// checkParams holds the constants to what the kind has: sorted, once each, with
// a value, and none that it does not know.
func (b Binding) checkParams(k kindRule) error {
	last, one := "", 0
	for _, p := range b.Params {
		known := slices.Contains(k.needs, p.Name) || slices.Contains(k.takes, p.Name) || slices.Contains(k.oneOf, p.Name)
		switch {
		case p.Name <= last:
			return fmt.Errorf("%w: its constants must be sorted and different", ErrBadIdentity)
		case !known:
			return fmt.Errorf("%w: kind %s has no constant %.64q", ErrBadIdentity, b.Kind, p.Name)
		case p.Value == "" || len(p.Value) > maxParamValue || strings.ContainsFunc(p.Value, isControl):
			return fmt.Errorf("%w: its %s must be 1 to %d bytes without control characters", ErrBadIdentity, p.Name, maxParamValue)
		}
		if slices.Contains(k.oneOf, p.Name) {
			one++
		}
		last = p.Name
	}
	for _, name := range k.needs {
		if b.Param(name) == "" {
			return fmt.Errorf("%w: kind %s needs %s", ErrBadIdentity, b.Kind, name)
		}
	}
	if len(k.oneOf) > 0 && one != 1 {
		return fmt.Errorf("%w: kind %s needs exactly one of %s", ErrBadIdentity, b.Kind, strings.Join(k.oneOf, " and "))
	}
	return nil
}
