package doctor

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/godbus/dbus/v5"
)

const (
	secretsName = "org.freedesktop.secrets"
	secretsPath = dbus.ObjectPath("/org/freedesktop/secrets")
	itemIface   = "org.freedesktop.Secret.Item"

	// keychainLimit is how long the keychain may take in all: it runs on this
	// machine, and one that waits for a person is an answer too.
	keychainLimit = 5 * time.Second
	// maxItems bounds how many items are looked at; a vault has at most a
	// thousand identities.
	maxItems = 2000
	// servicePrefix begins the service of our items; the daemon's id follows.
	servicePrefix = "chatelaine "
	// sealedLeast is the least that a sealed entry has: a nonce and a tag.
	sealedLeast = 24 + 16
)

// keychain does what any program of this session can: it asks for our items
// without a prompt.
func (e *exam) keychain(ctx context.Context) Finding {
	if e.isRoot() && e.Daemon != nil && e.Daemon.UID != 0 {
		return unseen(keychainID, keychainAttack, "you are root, and the keychain is a user's", asAgent)
	}
	address, ok := sessionBus(os.Getenv("DBUS_SESSION_BUS_ADDRESS"), e.Caller.UID)
	if !ok {
		if e.keychainUsed() {
			return unseen(keychainID, keychainAttack, "you have no session bus, and the daemon keeps items in a keychain", "ask again in the session of the daemon's user")
		}
		return Finding{ID: keychainID, Attack: keychainAttack, Verdict: Solved, Detail: "you have no session bus, and so no keychain"}
	}
	ctx, cancel := context.WithTimeout(ctx, keychainLimit)
	defer cancel()
	items, err := readItems(ctx, address)
	if err != nil {
		if e.Daemon != nil && e.Daemon.Told != nil && !e.keychainUsed() {
			return Finding{ID: keychainID, Attack: keychainAttack, Verdict: Solved, Detail: "the keychain does not answer, and the daemon keeps nothing there"}
		}
		return unseen(keychainID, keychainAttack, "the keychain does not answer without a prompt: "+err.Error(), "unlock the session's keyring and ask again")
	}
	return e.keychainFinding(items, "the keychain of this session")
}

// keychainUsed says whether the daemon told that something of its lies there.
func (e *exam) keychainUsed() bool {
	if e.Daemon == nil || e.Daemon.Told == nil {
		return false
	}
	t := e.Daemon.Told
	for _, s := range t.Slots {
		if s.Kind == "keychain" {
			return true
		}
	}
	return strings.Contains(t.Backend, "keychain") || strings.Contains(t.Rollback, "keychain")
}

// sessionBus is the address of the bus, if it is a Unix socket: other transports
// run programs or leave the machine.
func sessionBus(set string, uid int) (string, bool) {
	if set == "" || set == "autolaunch:" {
		path := filepath.Join("/run/user", strconv.Itoa(uid), "bus")
		return "unix:path=" + path, exists(path)
	}
	for part := range strings.SplitSeq(set, ";") {
		if !strings.HasPrefix(part, "unix:") {
			return "", false
		}
	}
	return set, true
}

var (
	errNoBus     = errors.New("there is nobody on the session bus who keeps secrets")
	errManyItems = fmt.Errorf("it has more than %d items", maxItems)
)

// readItems looks at each item of ours that needs no prompt. What it reads it
// judges and drops.
func readItems(ctx context.Context, address string) ([]keychainItem, error) {
	conn, err := dbus.Connect(address, dbus.WithContext(ctx))
	if err != nil {
		return nil, errNoBus
	}
	defer conn.Close()
	service := conn.Object(secretsName, secretsPath)
	var unlocked, locked []dbus.ObjectPath
	if err := service.CallWithContext(ctx, "org.freedesktop.Secret.Service.SearchItems", dbus.FlagNoAutoStart, map[string]string{}).Store(&unlocked, &locked); err != nil {
		return nil, errNoBus
	}
	if len(unlocked) > maxItems {
		return nil, errManyItems
	}
	var none dbus.Variant
	var session dbus.ObjectPath
	if err := service.CallWithContext(ctx, "org.freedesktop.Secret.Service.OpenSession", 0, "plain", dbus.MakeVariant("")).Store(&none, &session); err != nil {
		return nil, errNoBus
	}
	var out []keychainItem
	for _, path := range unlocked {
		if it, ours := readItem(ctx, conn.Object(secretsName, path), session); ours {
			out = append(out, it)
		}
	}
	return out, nil
}

// secretStruct is a secret on the bus (Secret Service API 0.2).
type secretStruct struct {
	Session     dbus.ObjectPath
	Parameters  []byte
	Value       []byte
	ContentType string
}

func readItem(ctx context.Context, item dbus.BusObject, session dbus.ObjectPath) (it keychainItem, ours bool) {
	var v dbus.Variant
	if err := item.CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, itemIface, "Attributes").Store(&v); err != nil {
		return it, false
	}
	attributes, _ := v.Value().(map[string]string)
	if !strings.HasPrefix(attributes["service"], servicePrefix) {
		return it, false // of other programs, and none of our business
	}
	var s secretStruct
	if err := item.CallWithContext(ctx, itemIface+".GetSecret", 0, session).Store(&s); err != nil {
		return it, false // it wants a person
	}
	defer clear(s.Value)
	it = judgeItem(attributes["username"], s.Value)
	return it, it.name != ""
}

// judgeItem says what an item is by its name and bytes: VAULT/identity/NAME/N is
// a sealed entry, VAULT/slot/ID opens the vault, VAULT/generation is a counter.
func judgeItem(name string, value []byte) keychainItem {
	parts := strings.Split(name, "/")
	it := keychainItem{name: name}
	switch {
	case len(parts) == 2 && parts[1] == "generation":
		return keychainItem{} // a number and its sum: no secret
	case len(parts) == 3 && parts[1] == "slot":
		it.slot = true
		return it
	case len(parts) == 4 && parts[1] == "identity":
		it.name = parts[2]
	}
	it.sealed = sealed(value)
	return it
}

// sealed says whether bytes are what the vault writes: base64 of a nonce, a
// ciphertext and a tag, which are no readable text.
func sealed(text []byte) bool {
	b := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(b, text)
	defer clear(b)
	return err == nil && n >= sealedLeast && !utf8.Valid(b[:n])
}
