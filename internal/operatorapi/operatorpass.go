package operatorapi

import (
	"encoding/base64"
	"net/http"

	"chatelaine/internal/approvals"
)

// opPassphrase replaces what decisions are proved with.
const opPassphrase = "operator.passphrase"

// operatorRoutes are part of the table in operatorapi.go.
func operatorRoutes() []route {
	return []route{{method: http.MethodPost, path: "/v1/operator/passphrase",
		widens: &widening{operation: opPassphrase, aside: []string{memberSecret}, plan: (*API).planPassphrase}}}
}

// planPassphrase replaces the operator passphrase, with a proof by the present
// one.
func (a *API) planPassphrase(_ string, of object) (statement, error) {
	if err := of.only(); err != nil {
		return statement{}, err
	}
	now, err := a.vault.ProofParams()
	if err != nil {
		return statement{}, err
	}
	return statement{
		covers: "replace the operator passphrase: decisions are proved with the new one from now on, and the present one decides nothing",
		facts:  []approvals.Part{factOf("the present operator passphrase", map[string]any{"salt": base64.StdEncoding.EncodeToString(now.Salt)})},
		do: func(c *call) (any, error) {
			pass, err := c.secret()
			if err != nil {
				return nil, err
			}
			defer clear(pass)
			if err := a.g.Record(c.r.Context(), opPassphrase, "", c.by, nil); err != nil {
				return nil, err
			}
			if err := a.vault.SetOperatorPassphrase(pass); err != nil {
				a.g.Note("operator.passphrase-refused", "", c.by)
				return nil, err
			}
			return map[string]any{"changed": true}, nil
		},
	}, nil
}
