package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"chatelaine/internal/auditlog"
)

const (
	// maxKeyFile is far above both forms of a key.
	maxKeyFile = 16 << 10
	// keyWorkFactor is the scrypt work of the file that init writes (2^18, some
	// 256 MiB for a second). A file that wants more was not made by it.
	keyWorkFactor = 18
	// keyText begins the text form of a private key.
	keyText = "CHAT-KEY1"
	ageMark = "age-encryption.org/"
)

// readAuditKey reads a key of the record: its text, as init printed or wrote it,
// or an age file under the operator passphrase. No error quotes the file.
func readAuditKey(cmd *cobra.Command, file string, fd int) (auditlog.Identity, error) {
	fd, err := fdGiven(cmd, "passphrase-fd", fd)
	if err != nil {
		return auditlog.Identity{}, err
	}
	b, err := readKeyFile(file)
	if err != nil {
		return auditlog.Identity{}, err
	}
	defer clear(b)
	if bytes.HasPrefix(b, []byte(ageMark)) {
		return unsealAuditKey(cmd.Context(), file, b, fd)
	}
	if fd >= 0 {
		return auditlog.Identity{}, usage(fmt.Sprintf("--passphrase-fd is only for a key under a passphrase, and %s is not one", file))
	}
	id, err := parseAuditKey(b)
	if err != nil {
		return id, usage(fmt.Sprintf("%s holds no key of the record, or it is mistyped", file),
			"give the file that init wrote with --recovery-out, one with the line it printed ("+keyText+"…), or audit-key.age of the state folder")
	}
	return id, nil
}

func readKeyFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usage(fmt.Sprintf("cannot read %s: %v", file, plainCause(err)))
	}
	defer f.Close()
	return readCapped(f, maxKeyFile, file)
}

// parseAuditKey passes over the sentence that init prints before the key.
func parseAuditKey(b []byte) (auditlog.Identity, error) {
	text := strings.ToUpper(string(b))
	if i := strings.Index(text, keyText); i > 0 {
		text = text[i:]
	}
	return auditlog.ParseIdentity(text)
}

// unsealAuditKey opens an age file with the operator passphrase; a person at a
// terminal may mistype.
func unsealAuditKey(ctx context.Context, file string, sealed []byte, fd int) (auditlog.Identity, error) {
	src, err := passphraseSource("the operator passphrase", "passphrase-fd", fd)
	if err != nil {
		return auditlog.Identity{}, err
	}
	defer src.close()
	for try := 1; ; try++ {
		pass, err := src.read(ctx, operatorPrompt)
		if err != nil {
			return auditlog.Identity{}, err
		}
		text, err := openAge(sealed, pass)
		clear(pass)
		switch {
		case err == nil:
			defer clear(text)
			id, err := parseAuditKey(text)
			if err != nil {
				err = usage(fmt.Sprintf("%s opens, but holds no key of the record", file))
			}
			return id, err
		case !errors.Is(err, age.ErrIncorrectIdentity):
			return auditlog.Identity{}, usage(fmt.Sprintf("%s cannot be opened: %v", file, err))
		case !src.interactive() || try == proofTries:
			return auditlog.Identity{}, usage(fmt.Sprintf("the passphrase does not open %s", file),
				"this wants the operator passphrase, which is not the vault's")
		}
		fmt.Fprintln(src.tty, "chatelaine: the passphrase does not open it; try again")
	}
}

func openAge(sealed, pass []byte) ([]byte, error) {
	id, err := age.NewScryptIdentity(string(pass))
	if err != nil {
		return nil, err
	}
	id.SetMaxWorkFactor(keyWorkFactor)
	r, err := age.Decrypt(bytes.NewReader(sealed), id)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxKeyFile))
	if err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	return text, nil
}
