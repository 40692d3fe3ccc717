package main

import (
	"testing"

	"chatelaine/internal/vault"
)

// Who proves that a secret is stored reads every place that it may go to: of a kind
// that is exchanged that is not the target.
func TestDestinationNamesThePlaceOfTheSecret(t *testing.T) {
	t.Parallel()
	to := vault.Binding{Scheme: "https", Host: "api.example", Port: 443, BasePath: "/v1"}
	exchanged := to
	exchanged.Token = &vault.Place{Scheme: "https", Host: "login.example", Port: 8443, Path: "/oauth2/token"}
	for want, b := range map[string]vault.Binding{
		"https://api.example:443/v1": to,
		"https://api.example:443/v1, the secret itself only to https://login.example:8443/oauth2/token": exchanged,
	} {
		if got := (boundPort{binding: b}).Destination(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
