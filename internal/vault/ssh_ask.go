package vault

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// signRequest is what the SSH secrets engine of OpenBao and HashiCorp Vault reads
// at POST /v1/ssh/sign/ROLE.
type signRequest struct {
	PublicKey       string            `json:"public_key"`
	ValidPrincipals string            `json:"valid_principals"`
	TTL             string            `json:"ttl"`
	CertType        string            `json:"cert_type"`
	CriticalOptions map[string]string `json:"critical_options,omitempty"`
}

// signRules give an answer without a certificate its code, as those of a token.
// 400 and 403 are what a role or a policy that does not fit gives.
var signRules = tokenRules{statuses: map[int]string{
	http.StatusBadRequest: "the role does not sign what is asked: look at its allowed users, its greatest TTL and its allowed critical options",
	http.StatusForbidden:  "the token may not use this role, or has ended",
	http.StatusNotFound:   "there is no such role or mount",
}}

// askCertificate has the certificate signed by the endpoint of the binding. What
// it answers is taken only where it is what was asked for.
func (l *Lease) askCertificate(ctx context.Context, want *ssh.Certificate, x Exchange) (*ssh.Certificate, error) {
	switch {
	case x == nil:
		return nil, fault.Newf(fault.Internal, "the certificate of %s is signed elsewhere, and nothing sends there", l.name)
	case l.cred.IsZero():
		return nil, errLeaseClosed
	}
	e := exchanging{name: l.name, generation: l.generation, binding: l.binding, secret: l.cred, send: x}
	r := e.request(http.MethodPost)
	r.MediaType = "application/json"
	var err error
	r.Body, err = json.Marshal(signRequest{
		PublicKey:       strings.TrimSpace(string(ssh.MarshalAuthorizedKey(want.Key))),
		ValidPrincipals: strings.Join(want.ValidPrincipals, ","),
		TTL:             strconv.FormatUint(lifeAsked(want), 10) + "s",
		CertType:        "user",
		CriticalOptions: want.CriticalOptions,
	})
	if err != nil {
		return nil, err
	}
	c := &tokenCredential{binding: l.binding, generation: l.generation, secrets: []secret.Secret{l.cred}, header: l.bearer}
	var signed *ssh.Certificate
	err = e.exchange(ctx, r, c, func(a TokenAnswer) error {
		signed, err = readCertificate(a)
		if err == nil {
			err = checkCertificate(signed, want, time.Now())
		}
		return err
	})
	l.vault.sources.refused(l.source, l.cred, err)
	return signed, err
}

// bearer is how the endpoint takes its token (the API's "Authentication").
func (l *Lease) bearer() string {
	value := ""
	l.cred.Use(func(b []byte) { value = "Bearer " + string(b) })
	return value
}

// lifeAsked is the certificate's life from now on, in seconds.
func lifeAsked(c *ssh.Certificate) uint64 {
	return c.ValidBefore - c.ValidAfter - uint64(certificateSkew/time.Second)
}

// readCertificate takes data.signed_key out of an answer.
func readCertificate(a TokenAnswer) (*ssh.Certificate, error) {
	if a.Status != http.StatusOK {
		return nil, signRules.refused(a, time.Now())
	}
	if err := checkJSON(a.Header); err != nil {
		return nil, err
	}
	outer, err := readObject(a.Body)
	if err != nil {
		return nil, invalidAnswer(err.Error())
	}
	defer outer.wipe()
	if outer["data"].kind != jsonObject {
		return nil, invalidAnswer("it has no data")
	}
	data, err := readObject(outer["data"].text)
	if err != nil {
		return nil, invalidAnswer(err.Error())
	}
	defer data.wipe()
	text, ok := data.str("signed_key")
	if !ok {
		return nil, invalidAnswer("it has no signed_key")
	}
	key, _, options, rest, err := ssh.ParseAuthorizedKey(bytes.Clone(text))
	if err != nil || len(options)+len(bytes.TrimSpace(rest)) > 0 {
		return nil, invalidAnswer("its signed_key is not one public key")
	}
	c, ok := key.(*ssh.Certificate)
	if !ok {
		return nil, invalidAnswer("its signed_key is no certificate")
	}
	return c, nil
}

// checkCertificate holds a certificate that came to the one that was asked for:
// our key, for logging in, the same principals, not a second longer, the same
// restrictions, and a signature that holds. Extensions are let through: the
// server's roles add them, and nothing here uses one.
func checkCertificate(got, want *ssh.Certificate, now time.Time) error {
	skew := uint64(certificateSkew / time.Second)
	sorted := slices.Sorted(slices.Values(got.ValidPrincipals))
	switch {
	case !bytes.Equal(got.Key.Marshal(), want.Key.Marshal()):
		return invalidAnswer("its certificate is for another key")
	case got.CertType != ssh.UserCert:
		return invalidAnswer("its certificate is not for a user")
	case !slices.Equal(sorted, want.ValidPrincipals):
		return invalidAnswer("its certificate is for other principals")
	case !maps.Equal(got.CriticalOptions, want.CriticalOptions):
		return invalidAnswer("its certificate has other critical options")
	case got.ValidBefore > want.ValidBefore+skew || got.ValidAfter >= got.ValidBefore:
		return invalidAnswer("its certificate is valid for longer than was asked")
	case got.ValidAfter > uint64(now.Unix())+skew || got.ValidBefore <= uint64(now.Unix()):
		return invalidAnswer("its certificate is not valid now; compare the clocks")
	case got.Signature == nil || got.Signature.Format == ssh.KeyAlgoRSA:
		return invalidAnswer("its certificate is signed with SHA-1, which servers refuse")
	}
	checker := &ssh.CertChecker{
		SupportedCriticalOptions: []string{optionForceCommand},
		Clock:                    func() time.Time { return time.Unix(int64(got.ValidAfter), 0) }, // its times were looked at above
	}
	if err := checker.CheckCert(want.ValidPrincipals[0], got); err != nil {
		return invalidAnswer("its certificate's signature does not hold")
	}
	return nil
}
