package operatorapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// Backup is a sealed vault within an age file.
type Backup struct {
	File       []byte `json:"backup"` // base64 in JSON
	Vault      string `json:"vault"`
	Generation uint64 `json:"generation"`
	Identities int    `json:"identities"`
}

// BackupFacts are what a backup shows without a key.
type BackupFacts struct {
	Vault      string
	Generation uint64
}

// Way says what a person opens a vault or a backup with.
type Way string

// The two ways that a person has.
const (
	ByPassphrase Way = "passphrase"
	ByRecovery   Way = "recovery"
)

// Imported says what became of the identities of a backup.
type Imported struct {
	Added    []string `json:"added"`
	Replaced []string `json:"replaced"`
	Kept     []string `json:"kept"`
}

// maxRecipients bounds who a backup is for.
const maxRecipients = 16

// planBackup writes a copy of the vault that is sealed twice: as it is, and for
// the named recipients.
func (a *API) planBackup(_ string, of object) (statement, error) {
	if err := of.only("recipients"); err != nil {
		return statement{}, err
	}
	list, ok := of.members["recipients"].([]any)
	if !ok || len(list) == 0 || len(list) > maxRecipients {
		return statement{}, invalid(of.at+"/recipients", fmt.Sprintf("must be 1 to %d recipients", maxRecipients))
	}
	var names []string
	for _, v := range list {
		name, ok := v.(string)
		if !ok {
			return statement{}, invalid(of.at+"/recipients", "must be texts")
		}
		names = append(names, name)
	}
	if err := a.vault.CheckRecipients(names); err != nil {
		return statement{}, err
	}
	return statement{
		covers: "write a sealed copy of the vault that only the holders of these keys can unpack, and then open with a passphrase or recovery code of the vault: " + strings.Join(names, ", "),
		of:     map[string]any{"recipients": names},
		do: func(c *call) (any, error) {
			if err := a.g.Record(c.r.Context(), opBackup, "", c.by, map[string]any{"recipients": strings.Join(names, " ")}); err != nil {
				return nil, err
			}
			return a.vault.Backup(c.r.Context(), names)
		},
	}, nil
}

// maxImport is the largest backup: a whole vault file.
const maxImport = 16 << 20

// importPart takes a piece of a sealed vault file: one body is too small for a
// large one. The pieces belong to the connection and end with it.
func (a *API) importPart(c *call) (any, error) {
	if err := c.only("part", "first"); err != nil {
		return nil, err
	}
	text, err := c.text("part", true)
	if err != nil {
		return nil, err
	}
	first, err := c.body.flag("first", false)
	if err != nil {
		return nil, err
	}
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, invalid("/part", "is not base64")
	}
	if c.conn == nil {
		return nil, invalid("", "this connection cannot hold a backup")
	}
	n, ok := c.conn.hold(b, first)
	if !ok {
		return nil, invalid("/part", fmt.Sprintf("a backup has at most %d bytes", maxImport))
	}
	return map[string]any{"bytes": n}, nil
}

// hold keeps a piece; it answers how much is held.
func (c *connection) hold(b []byte, first bool) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if first {
		c.held = nil
	}
	if len(c.held)+len(b) > maxImport {
		c.held = nil
		return 0, false
	}
	c.held = append(c.held, b...)
	return len(c.held), true
}

func (c *connection) take() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.held
	c.held = nil
	return b
}

// planImport takes identities out of a backup whose digest the proof covers. The
// backup itself came in parts, its passphrase or code comes with the request.
func (a *API) planImport(_ string, of object) (statement, error) {
	if err := of.only("digest", "opens", "replace"); err != nil {
		return statement{}, err
	}
	digest, err := of.text("digest", true)
	if err != nil {
		return statement{}, err
	}
	if b, err := hex.DecodeString(digest); err != nil || len(b) != sha256.Size || hex.EncodeToString(b) != digest {
		return statement{}, invalid(of.at+"/digest", "must be the SHA-256 of the sealed vault in the backup, in lower-case hexadecimal")
	}
	opens, err := wayOf(of)
	if err != nil {
		return statement{}, err
	}
	replace, err := of.flag("replace", false)
	if err != nil {
		return statement{}, err
	}
	s := statement{of: map[string]any{"digest": digest, "opens": string(opens)}}
	already := "kept"
	if replace {
		s.of["replace"] = true
		already = "replaced"
	}
	s.covers = fmt.Sprintf("store the identities of the backup with digest %s, each bound as it is there; those that are stored already are %s", digest[:digestShown], already)
	s.do = func(c *call) (any, error) { return a.doImport(c, digest, opens, replace) }
	return s, nil
}

func (a *API) doImport(c *call, digest string, opens Way, replace bool) (any, error) {
	secret, err := c.secret()
	if err != nil {
		return nil, err
	}
	defer clear(secret)
	var b []byte
	if c.conn != nil {
		b = c.conn.take()
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != digest {
		return nil, invalid("/digest", "is not the digest of the parts that came on this connection")
	}
	facts, err := a.vault.LookAtBackup(b)
	if err != nil {
		return nil, err
	}
	detail := map[string]any{"digest": digest, "vault": facts.Vault, "generation": facts.Generation, "replace": replace}
	if err := a.g.Record(c.r.Context(), opImport, "", c.by, detail); err != nil {
		return nil, err
	}
	return a.vault.Import(c.r.Context(), b, opens, secret, replace)
}
