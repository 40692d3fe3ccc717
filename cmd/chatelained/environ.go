package main

import (
	"log/slog"
	"os"
	"strings"
)

// keptVariables are the only variables the daemon keeps. Proxies, certificate
// stores, resolver and loader switches would let whoever starts the daemon bend
// where its calls go.
var keptVariables = map[string]bool{
	"HOME": true, "USER": true, "LOGNAME": true, "PATH": true, "LANG": true, "TZ": true, "TMPDIR": true,
	"DBUS_SESSION_BUS_ADDRESS": true,
	"NOTIFY_SOCKET":            true, "INVOCATION_ID": true, "JOURNAL_STREAM": true,
	"CREDENTIALS_DIRECTORY": true, "STATE_DIRECTORY": true, "RUNTIME_DIRECTORY": true, "CONFIGURATION_DIRECTORY": true,
	"GOCOVERDIR": true,
}

var keptPrefixes = []string{"CHATELAINE_", "XDG_", "LC_"}

// desktopVariables go to the notify and alert programs only: the daemon itself must not
// have a display, since a locked keychain would then open a window and wait.
var desktopVariables = []string{"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"}

func kept(name string) bool {
	if keptVariables[name] {
		return true
	}
	for _, p := range keptPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// environment is what is left of the variables that the daemon was started with.
type environment struct {
	forChildren []string // what the notify and alert programs are given
	ignored     []string // names of suspicious ones that were dropped
}

// cleanEnvironment drops every other variable. Only the names of suspicious ones
// are kept and logged.
func cleanEnvironment(log *slog.Logger) (e environment) {
	for _, name := range desktopVariables {
		if v, ok := os.LookupEnv(name); ok {
			e.forChildren = append(e.forChildren, name+"="+v)
		}
	}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if kept(name) {
			continue
		}
		if suspicious(name) {
			log.Warn("environment variable ignored", "name", name)
			e.ignored = append(e.ignored, name)
		}
		_ = os.Unsetenv(name)
	}
	e.forChildren = append(e.forChildren, os.Environ()...)
	return e
}

func suspicious(name string) bool {
	upper := strings.ToUpper(name)
	return strings.HasSuffix(upper, "_PROXY") || strings.HasPrefix(upper, "SSL_CERT") || strings.HasPrefix(upper, "LD_") ||
		strings.HasPrefix(upper, "GODEBUG") || strings.HasPrefix(upper, "DYLD_") || upper == "RES_OPTIONS" || upper == "LOCALDOMAIN" || upper == "HOSTALIASES"
}
