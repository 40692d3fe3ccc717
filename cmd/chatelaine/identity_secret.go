package main

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json/v2"
	"fmt"
	"strings"
	"time"
)

// secretKind says what the secret of one kind of identity is.
type secretKind struct {
	kind, what string
	pem        bool // PEM blocks, several lines
	also       bool // or something else
	jwt        bool // a token that may say when it expires
}

var secretKinds = []secretKind{
	{kind: "bearer", what: "the token itself, without the word Bearer", jwt: true},
	{kind: "header", what: "the header's value, without the prefix of targets.yaml", jwt: true},
	{kind: "basic", what: "the password; the user name is in targets.yaml"},
	{kind: "body", what: "the text that goes into the request's body"},
	{kind: "client_certificate", what: "PEM: the certificate, its chain, and the private key without a passphrase", pem: true},
	{kind: "oauth2_client", what: "the client secret"},
	{kind: "oauth2_refresh", what: "the refresh token with `auth: none`; else {\"refresh_token\": \"…\", \"client_secret\": \"…\"}"},
	{kind: "github_app", what: "PEM: the app's private key", pem: true},
	{kind: "jwt_bearer", what: "PEM: the private key; or the JSON file of a Google service account", pem: true, also: true},
	{kind: "registry_token", what: "the password or access token of the registry's user"},
	{kind: "ssh_key", what: "an OpenSSH private key without a passphrase", pem: true},
	{kind: "ssh_certificate", what: "the private key of the CA; with `sign`, the token of the signing endpoint", pem: true, also: true},
}

func kindTable() string {
	var b strings.Builder
	for _, k := range secretKinds {
		fmt.Fprintf(&b, "  %-18s  %s\n", k.kind, k.what)
	}
	return strings.TrimRight(b.String(), "\n")
}

// kindOf is what is known of a kind; a later daemon may have others.
func kindOf(kind string) secretKind {
	for _, k := range secretKinds {
		if k.kind == kind {
			return k
		}
	}
	return secretKind{kind: kind, what: "the secret"}
}

// newSecret reads a secret and refuses what can be seen to be wrong before the
// operator passphrase is asked. The caller wipes it.
func (a *app) newSecret(ctx context.Context, src *passSource, kind string, f secretFlags) ([]byte, error) {
	k := kindOf(kind)
	b, err := a.readSecret(ctx, src, k)
	if err != nil {
		return nil, err
	}
	if err := k.check(b, f.short); err != nil {
		clear(b)
		return nil, err
	}
	if when, ok := jwtExpiry(b); k.jwt && ok && f.expires == "" {
		a.jwtHint(when)
	}
	return b, nil
}

const pemBegin = "-----BEGIN "

// check finds the mistakes that people make with a kind. The daemon looks closer.
func (k secretKind) check(b []byte, short bool) error {
	isPEM := bytes.HasPrefix(bytes.TrimSpace(b), []byte(pemBegin))
	switch {
	case len(b) < shortSecret && !short:
		return usage(fmt.Sprintf("the secret has fewer than %d bytes; nothing was stored", shortSecret),
			"is it whole? if it really is that short, say --short")
	case k.pem && !k.also && !isPEM:
		hint := "it is " + k.what
		if publicKey(b) {
			hint += "; this is a public key: take the file beside it, without .pub"
		}
		return usage("a secret of kind "+k.kind+" begins with "+strings.TrimSpace(pemBegin)+"; nothing was stored", hint)
	case isPEM && !k.pem && k.kind != "body" && k.what != kindOf("").what:
		return usage("this is a PEM; nothing was stored", "the secret of kind "+k.kind+" is "+k.what)
	case k.kind == "bearer" && len(b) > 7 && strings.EqualFold(string(b[:7]), "bearer "):
		return usage("the secret begins with the word Bearer, which is added by itself; nothing was stored", "give the token alone")
	}
	return nil
}

// publicKey says whether somebody took the .pub file of ssh-keygen.
func publicKey(b []byte) bool {
	for _, kind := range []string{"ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"} {
		if bytes.HasPrefix(b, []byte(kind)) {
			return true
		}
	}
	return false
}

// readSecret takes the secret from standard input, or twice from the terminal
// where standard input is one.
func (a *app) readSecret(ctx context.Context, src *passSource, k secretKind) ([]byte, error) {
	if !isTerminal(a.in) {
		return readCapped(a.in, maxSecret, "the secret on standard input")
	}
	if k.pem && !k.also {
		return nil, usage("a secret of kind "+k.kind+" has several lines, which a prompt does not take", "give it on standard input: … NAME <FILE, and remove the file then")
	}
	tty := src.tty
	if tty == nil {
		t, err := passphraseSource("the secret", "proof-fd", -1)
		if err != nil {
			return nil, err
		}
		defer t.close()
		tty = t.tty
	}
	fmt.Fprintf(tty, "The secret of kind %s is %s.\n", printable(k.kind), k.what)
	first, err := readHidden(ctx, tty, "secret (not shown): ")
	if err != nil {
		return nil, err
	}
	second, err := readHidden(ctx, tty, "once more: ")
	if err != nil {
		clear(first)
		return nil, err
	}
	defer clear(second)
	if subtle.ConstantTimeCompare(first, second) != 1 {
		clear(first)
		return nil, usage("the two entries differ; nothing was stored")
	}
	if len(first) != len(bytes.TrimSpace(first)) {
		fmt.Fprintln(tty, "chatelaine: note: the secret begins or ends with a space, which is kept")
	}
	return first, nil
}

// jwtHint tells what a token says of itself. It is no proof, so nothing is done
// with it.
func (a *app) jwtHint(when time.Time) {
	text := when.UTC().Format(time.RFC3339)
	if time.Until(when) <= 0 {
		a.note("hint: this token says that it expired at %s", text)
		return
	}
	a.note("hint: this token says that it expires at %s; to be warned before: --expires %s", text, text)
}

// jwtExpiry reads the exp of a token in the form of a JWT (RFC 7519 section
// 4.1.4), unproved. What it decodes is cleared.
func jwtExpiry(secret []byte) (time.Time, bool) {
	parts := bytes.Split(secret, []byte("."))
	if len(parts) != 3 || !bytes.HasPrefix(secret, []byte("ey")) {
		return time.Time{}, false
	}
	claims := make([]byte, base64.RawURLEncoding.DecodedLen(len(parts[1])))
	defer clear(claims)
	n, err := base64.RawURLEncoding.Decode(claims, parts[1])
	if err != nil {
		return time.Time{}, false
	}
	var c struct {
		Exp float64 `json:"exp"`
	}
	if err := json.Unmarshal(claims[:n], &c); err != nil || c.Exp < 1 || c.Exp > maxExp {
		return time.Time{}, false
	}
	return time.Unix(int64(c.Exp), 0), true
}

// maxExp is the end of the year 9999, the last that a date can be written of.
const maxExp = 253402300799
