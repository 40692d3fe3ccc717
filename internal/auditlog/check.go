package auditlog

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
)

var (
	errNote     = errors.New("the checkpoint is not a signed note")
	errNoteSize = errors.New("the checkpoint's size is not this place")
	errNoteRoot = errors.New("the checkpoint's root is not the root of the records")
	errNoteSig  = errors.New("the checkpoint is not signed by the epoch's key")
)

// verifyCheckpoint checks the body of a CHECK record: a C2SP checkpoint over
// all records before it, signed under its origin by the epoch's key. Further
// signature lines, such as those of witnesses, are allowed and not judged.
// Written by a later release; this one reads it.
func verifyCheckpoint(body []byte, t *tree, signer [32]byte) error {
	cut := bytes.Index(body, []byte("\n\n"))
	if cut < 0 {
		return errNote
	}
	text, sigs := body[:cut+1], string(body[cut+2:])
	lines := strings.Split(string(text), "\n")
	if len(lines) < 4 || lines[0] == "" || !strings.HasSuffix(sigs, "\n") {
		return errNote
	}
	size, err := strconv.ParseUint(lines[1], 10, 64)
	if err != nil || strconv.FormatUint(size, 10) != lines[1] {
		return errNote
	}
	if size != t.size {
		return errNoteSize
	}
	root := t.root()
	if lines[2] != base64.StdEncoding.EncodeToString(root[:]) {
		return errNoteRoot
	}
	for line := range strings.Lines(sigs) {
		if noteLineBy(line, lines[0], text, signer) {
			return nil
		}
	}
	return errNoteSig
}

// noteLineBy says whether line is the signature of text by name's key.
func noteLineBy(line, name string, text []byte, key [32]byte) bool {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "— "+name+" ")
	if !ok {
		return false
	}
	b, err := base64.StdEncoding.Strict().DecodeString(rest)
	if err != nil || len(b) != 4+ed25519.SignatureSize {
		return false
	}
	id := sha256.Sum256(append([]byte(name+"\n\x01"), key[:]...))
	return bytes.Equal(b[:4], id[:4]) && ed25519.Verify(key[:], text, b[4:])
}
