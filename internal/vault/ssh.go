package vault

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

const (
	// certificateSkew is how far a server's clock may run behind ours.
	certificateSkew = time.Minute
	// optionForceCommand is of OpenSSH's PROTOCOL.certkeys, "Critical options".
	optionForceCommand = "force-command"
	// minValid and maxValid bound the life of a certificate: it is for one call.
	minValid = time.Minute
	maxValid = time.Hour
	// maxPrincipals is above what one certificate is for.
	maxPrincipals = 16
)

// SSHSigner returns what proves the identity to an SSH server. It is asked when
// the server has proved its host key and before anything is sent that tells who
// logs in; it compares the binding with that connection and fails with
// TARGET_NOT_ALLOWED. Of the kind ssh_certificate each signer has a key and a
// certificate of its own, for minutes; command is the one that will be run, and
// is what the certificate permits where the binding says so. x is asked where
// something else signs. The signer ends with the lease.
func (l *Lease) SSHSigner(ctx context.Context, c MadeSSH, command string, x Exchange) (ssh.Signer, error) {
	if l == nil {
		return nil, fault.New(fault.Internal, errLeaseClosed)
	}
	if err := l.binding.allowsSSH(c); err != nil {
		return nil, err
	}
	var out ssh.Signer
	var err error
	if l.binding.Kind == KindSSHKey {
		out, err = holdSSH(l.cred, parseSSHKey)
	} else {
		out, err = l.certified(ctx, command, x)
	}
	if err == nil {
		return out, nil
	}
	if _, coded := errors.AsType[*fault.Error](err); coded {
		return nil, err
	}
	if errors.Is(err, errLeaseClosed) {
		return nil, fault.New(fault.Internal, err)
	}
	return nil, fault.Newf(fault.IdentityUnavailable, "identity %s: %w; put it again", l.name, err)
}

// certified makes a key, has it certified, and returns both as one signer.
func (l *Lease) certified(ctx context.Context, command string, x Exchange) (ssh.Signer, error) {
	key, err := l.freshKey()
	if err != nil {
		return nil, err
	}
	signer, err := holdSSH(key, parseSeed)
	if err != nil {
		return nil, err
	}
	want, err := l.wantCertificate(signer.PublicKey(), command, time.Now())
	if err != nil {
		return nil, err
	}
	if l.binding.Token != nil {
		want, err = l.askCertificate(ctx, want, x)
	} else {
		err = l.signCertificate(want)
	}
	if err != nil {
		return nil, err
	}
	return ssh.NewCertSigner(want, signer)
}

// freshKey makes the seed of a key that ends with the lease.
func (l *Lease) freshKey() (secret.Secret, error) {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // crypto/rand.Read never fails
	s := secret.New(seed)
	clear(seed)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cred.IsZero() {
		s.Wipe()
		return s, errLeaseClosed
	}
	l.keys = append(l.keys, s)
	return s, nil
}

func parseSeed(seed []byte) (crypto.Signer, error) { return ed25519.NewKeyFromSeed(seed), nil }

// wantCertificate is the certificate as it should be, without its signature
// (PROTOCOL.certkeys of OpenSSH): no extension, so no terminal and no
// forwarding.
func (l *Lease) wantCertificate(key ssh.PublicKey, command string, now time.Time) (*ssh.Certificate, error) {
	seconds, err := strconv.ParseInt(l.binding.Param("valid"), 10, 64)
	if err != nil {
		return nil, errors.New("its life cannot be read")
	}
	var serial [8]byte
	_, _ = rand.Read(serial[:])
	c := &ssh.Certificate{
		Key: key, Serial: binary.BigEndian.Uint64(serial[:]), CertType: ssh.UserCert, KeyId: "chatelaine " + l.name,
		ValidPrincipals: strings.Fields(l.binding.Param("principals")),
		ValidAfter:      uint64(now.Add(-certificateSkew).Unix()),
		ValidBefore:     uint64(now.Unix() + seconds),
	}
	if l.binding.Param("force_command") == "" {
		return c, nil
	}
	if command == "" {
		return nil, fault.Newf(fault.Internal, "the certificate of %s is for one command, and none is named", l.name)
	}
	c.CriticalOptions = map[string]string{optionForceCommand: command}
	return c, nil
}

// signCertificate signs with the CA's key that is in the vault.
func (l *Lease) signCertificate(c *ssh.Certificate) error {
	ca, err := holdSSH(l.cred, parseSSHKey)
	if err != nil {
		return err
	}
	if err := c.SignCert(rand.Reader, ca); err != nil {
		return fmt.Errorf("its key cannot sign: %w", err)
	}
	return nil
}

// holdSSH is holdKey for SSH. RSA signs with SHA-2 alone (RFC 8332).
func holdSSH(s secret.Secret, parse func([]byte) (crypto.Signer, error)) (ssh.Signer, error) {
	held, err := holdKey(s, parse)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromSigner(held)
	if err != nil {
		return nil, errors.New("its key is of a kind that SSH does not have")
	}
	if _, ok := held.public.(*rsa.PublicKey); !ok {
		return signer, nil
	}
	return ssh.NewSignerWithAlgorithms(signer.(ssh.AlgorithmSigner), []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256})
}

// checkSSHParams holds the constants of a certificate to what can be signed.
func (b Binding) checkSSHParams() error {
	if b.Kind != KindSSHCertificate {
		return nil
	}
	seconds, err := strconv.Atoi(b.Param("valid"))
	if valid := time.Duration(seconds) * time.Second; err != nil || valid < minValid || valid > maxValid || strconv.Itoa(seconds) != b.Param("valid") {
		return fmt.Errorf("%w: its life must be %d to %d whole seconds", ErrBadIdentity, int(minValid.Seconds()), int(maxValid.Seconds()))
	}
	names := strings.Split(b.Param("principals"), " ")
	if len(names) > maxPrincipals || !isSet(names) || slices.ContainsFunc(names, func(s string) bool { return strings.ContainsAny(s, ",") }) {
		return fmt.Errorf("%w: its principals must be 1 to %d different names, sorted, with one space between", ErrBadIdentity, maxPrincipals)
	}
	if f := b.Param("force_command"); f != "" && f != "true" {
		return fmt.Errorf("%w: its force_command must be true or absent", ErrBadIdentity)
	}
	return nil
}
