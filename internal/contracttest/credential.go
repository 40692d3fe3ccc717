package contracttest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"

	"chatelaine/internal/actions"
	"chatelaine/internal/contracttest/planted"
	"chatelaine/internal/executor"
)

// credential puts a planted secret where the target's identity has its own. It
// is the contract tests' stand-in for a vault's lease and knows no real secret.
type credential struct {
	secret *planted.Secret
	spec   *actions.IdentitySpec
	target *actions.Target
}

// line returns the one header line that carries the secret, two empty texts
// for kind none.
func (c credential) line() (name, value string) {
	switch c.spec.Kind() {
	case actions.KindBearer, actions.KindHeader:
		return c.spec.HeaderName(), c.spec.Prefix() + c.secret.Text()
	case actions.KindBasic:
		pair := c.spec.Username() + ":" + c.secret.Text()
		return c.spec.HeaderName(), "Basic " + base64.StdEncoding.EncodeToString([]byte(pair))
	}
	return "", ""
}

// Attach compares the connection with the target, as a vault does with its
// binding, and writes the line.
func (c credential) Attach(out executor.Outgoing, made executor.Connection) error {
	t := c.target
	if made.Scheme != t.Scheme() || made.Host != t.Host() || made.Port != t.Port() || made.BasePath != t.BasePath() {
		return fmt.Errorf("the connection is not to the target %s", t.Name())
	}
	if name, value := c.line(); name != "" {
		return out.SetHeader(name, value)
	}
	return nil
}

// echoed says whether the secret stands in an answer, head or body.
func (c credential) echoed(ex executor.Exchange) []string {
	var b bytes.Buffer
	for _, h := range []http.Header{ex.Header, ex.Trailer} {
		for name, values := range h {
			for _, v := range values {
				b.WriteString(name + ": " + v + "\n")
			}
		}
	}
	b.Write(ex.Body)
	return c.secret.In(b.Bytes())
}
