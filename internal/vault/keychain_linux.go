package vault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/godbus/dbus/v5"
)

// Names of the Secret Service API, and the two collections that the keychain
// library uses, in its order.
const (
	secretsName       = "org.freedesktop.secrets"
	secretsPath       = dbus.ObjectPath("/org/freedesktop/secrets")
	loginCollection   = dbus.ObjectPath("/org/freedesktop/secrets/collection/login")
	defaultCollection = dbus.ObjectPath("/org/freedesktop/secrets/aliases/default")
)

// keychainReady asks the Secret Service whether its collection is unlocked,
// over a connection of its own that obeys ctx. The library would start a bus
// where there is none, open a prompt where the collection is locked, and wait
// for ever where nobody answers.
func keychainReady(ctx context.Context) error {
	address, err := busAddress(os.Getenv("DBUS_SESSION_BUS_ADDRESS"), busAt(os.Getuid()))
	if err != nil {
		return err
	}
	conn, err := dbus.Connect(address, dbus.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("%w: the session bus cannot be reached: %w", ErrKeychainUnavailable, err)
	}
	defer conn.Close()
	var paths []dbus.ObjectPath
	if err := property(ctx, conn, secretsPath, "org.freedesktop.Secret.Service", "Collections", &paths); err != nil {
		return err
	}
	collection := defaultCollection
	if slices.Contains(paths, loginCollection) {
		collection = loginCollection
	}
	locked := true
	err = property(ctx, conn, collection, "org.freedesktop.Secret.Collection", "Locked", &locked)
	var derr dbus.Error
	switch {
	case errors.As(err, &derr) && collection == defaultCollection && derr.Name != "org.freedesktop.DBus.Error.NoReply":
		return fmt.Errorf("%w: there is no keyring yet; make and unlock one", ErrKeychainLocked)
	case err != nil:
		return err
	case locked:
		return fmt.Errorf("%w: unlock the session's keyring", ErrKeychainLocked)
	}
	return nil
}

// property reads one property into out.
func property(ctx context.Context, conn *dbus.Conn, path dbus.ObjectPath, iface, name string, out any) error {
	var v dbus.Variant
	call := conn.Object(secretsName, path).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, iface, name)
	err := call.Store(&v)
	if err == nil {
		err = v.Store(out)
	}
	if err != nil {
		return fmt.Errorf("%w: the secret service: %w", ErrKeychainUnavailable, err)
	}
	return nil
}

// busAt returns the socket of the user's session bus, "" where there is none.
// The keychain library looks there too.
func busAt(uid int) string {
	path := filepath.Join("/run/user", strconv.Itoa(uid), "bus")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// busAddress returns the address of the session bus, out of what the environment
// says and the socket that is there. Only Unix sockets are taken: other
// transports run programs or leave the machine.
func busAddress(set, socket string) (string, error) {
	if set == "" || set == "autolaunch:" {
		if socket == "" {
			return "", fmt.Errorf("%w: there is no session bus (DBUS_SESSION_BUS_ADDRESS is not set)", ErrKeychainUnavailable)
		}
		return "unix:path=" + socket, nil
	}
	for part := range strings.SplitSeq(set, ";") {
		if !strings.HasPrefix(part, "unix:") {
			return "", fmt.Errorf("%w: the address of the session bus is not a Unix socket", ErrKeychainUnavailable)
		}
	}
	return set, nil
}
