package contracttest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"chatelaine/internal/actions"
	"chatelaine/internal/contracttest/planted"
	"chatelaine/internal/executor"
	"chatelaine/internal/validate"
)

// credential puts a planted secret where the target's identity has its own. It
// is the contract tests' stand-in for a vault's lease and knows no real secret.
// An identity that is exchanged for a token plays as bearer: what a contract sends
// and reads does not depend on how the token came.
type credential struct {
	secret      *planted.Secret
	spec        *actions.IdentitySpec
	target      *actions.Target
	certificate *tls.Certificate // of the kind client_certificate, else nil
}

// newCredential plants a secret for one fixture.
func newCredential(t *trust, spec *actions.IdentitySpec, target *actions.Target) (credential, error) {
	c := credential{secret: planted.Random(), spec: spec, target: target}
	if spec.Kind() != actions.KindClientCertificate {
		return c, nil
	}
	cert, err := t.ca.Client(spec.Name())
	if err != nil {
		return c, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		return c, err
	}
	c.certificate, c.secret = &cert, planted.New(base64.StdEncoding.EncodeToString(key))
	return c, nil
}

// bodyPlace is the place of a credential in the body, "/POINTER" or the name of a
// field, "" where it has none.
func (c credential) bodyPlace() string {
	if c.spec.Kind() != actions.KindBody {
		return ""
	}
	p := c.spec.Params()
	return p["json"] + p["form"]
}

// place is where the one credential is, in the words of `credential` in a fixture.
func (c credential) place() string {
	name, _ := c.line()
	switch {
	case c.certificate != nil:
		return placeCertificate
	case c.bodyPlace() != "":
		return placeBody + c.bodyPlace()
	case name != "":
		return name
	}
	return placeNone
}

// line returns the one header line that carries the secret, two empty texts
// where none does.
func (c credential) line() (name, value string) {
	switch {
	case c.spec.Kind() == actions.KindBasic:
		pair := c.spec.Username() + ":" + c.secret.Text()
		return c.spec.HeaderName(), "Basic " + base64.StdEncoding.EncodeToString([]byte(pair))
	case c.spec.HeaderName() != "":
		return c.spec.HeaderName(), c.spec.Prefix() + c.secret.Text()
	}
	return "", ""
}

// Attach compares the connection with the target, as a vault does with its
// binding, and puts the secret in its place.
func (c credential) Attach(out executor.Outgoing, made executor.Connection) error {
	if err := c.bound(made); err != nil {
		return err
	}
	if c.bodyPlace() != "" {
		return c.fill(out)
	}
	if name, value := c.line(); name != "" {
		return out.SetHeader(name, value)
	}
	return nil
}

func (c credential) bound(made executor.Connection) error {
	t := c.target
	if made.Scheme != t.Scheme() || made.Host != t.Host() || made.Port != t.Port() || made.BasePath != t.BasePath() {
		return fmt.Errorf("the connection is not to the target %s", t.Name())
	}
	return nil
}

// fill writes the secret into the body as a vault does.
func (c credential) fill(out executor.Outgoing) error {
	form, ok := out.Hole()
	if !ok {
		return errors.New("the body has no place for the credential")
	}
	text, err := json.Marshal(c.secret.Text())
	if err != nil {
		return err
	}
	text = text[1 : len(text)-1]
	if form {
		text = []byte(url.QueryEscape(c.secret.Text()))
	}
	return out.FillBody(func(dst []byte) []byte { return append(dst, text...) })
}

// ClientCertificate shows the certificate of the kind that has one.
func (c credential) ClientCertificate(made executor.Connection) (*tls.Certificate, error) {
	if c.certificate == nil {
		return nil, nil
	}
	return c.certificate, c.bound(made)
}

// Generation is that of the one secret of a fixture.
func (c credential) Generation() uint64 { return 1 }

// inBody says whether the secret, and nothing else, stands in its place in a body.
func (c credential) inBody(body []byte) bool {
	place := c.bodyPlace()
	if !strings.HasPrefix(place, "/") {
		q, err := url.ParseQuery(string(body))
		return err == nil && len(q[place]) == 1 && q.Get(place) == c.secret.Text()
	}
	doc, err := validate.Parse(body, validate.AnswerLimits())
	if err != nil {
		return false
	}
	v, ok := at(doc, split(place))
	return ok && v == c.secret.Text()
}

// shown says whether a connection showed the certificate of this credential.
func (c credential) shown(state *tls.ConnectionState) bool {
	return state != nil && len(state.PeerCertificates) > 0 && bytes.Equal(state.PeerCertificates[0].Raw, c.certificate.Certificate[0])
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
