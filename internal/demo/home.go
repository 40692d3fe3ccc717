package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"chatelaine/internal/client"
)

// The two passphrases of a home that lives for seconds. They open nothing else,
// so --keep may print them.
const (
	vaultPassphrase    = "throw-away vault words"
	operatorPassphrase = "throw-away operator words"
)

// socketLimit is the longest path of a Unix socket that every system takes
// (104 bytes on macOS with the closing zero).
const socketLimit = 103

// home is a throw-away installation.
type home struct {
	dir    string
	places client.Places
}

// newHome makes the folder: in the usual place for temporary files, or in /tmp
// where that would make the sockets' paths too long.
func newHome() (*home, error) {
	for _, base := range []string{os.TempDir(), "/tmp"} {
		dir, err := os.MkdirTemp(base, "chatelaine-demo-")
		if err != nil {
			return nil, fmt.Errorf("the throw-away home: %w", err)
		}
		h := &home{dir: dir, places: client.Places{
			Config: filepath.Join(dir, "config"), State: filepath.Join(dir, "state"), Runtime: filepath.Join(dir, "run")}}
		if len(h.places.OperatorSocket()) <= socketLimit {
			return h, nil
		}
		_ = os.RemoveAll(dir)
	}
	return nil, errors.New("the throw-away home: no folder has a path that is short enough for a socket; set TMPDIR")
}

func (h *home) path(name string) string { return filepath.Join(h.dir, name) }

func (h *home) log() string { return h.path("daemon.log") }

// shipped are the contracts that the demo plays.
var shipped = []string{"deploy_release", "get_deployment"}

// settings of the demo's daemon. It has no TCP port, so nothing collides, and
// logs all that it can.
const settings = "listen: {agent_tcp: off}\nlog: {level: debug}\n"

// site leads the two targets of each environment to the release service.
const site = `targets:
  deploy-test:
    {url: 'https://%[1]s/test', ca: ca.pem, allow: [loopback], identity: deploy-test-bot,
     actions: [deploy_release], effects: [read, change], ask: session}
  deploy-test-status:
    {url: 'https://%[1]s/test', ca: ca.pem, allow: [loopback], identity: deploy-test-bot,
     actions: [get_deployment], effects: [read]}
  deploy-prod:
    {url: 'https://%[1]s/production', ca: ca.pem, allow: [loopback], identity: deploy-prod-bot,
     actions: [deploy_release], effects: [read, change], ask: every_call}
  deploy-prod-status:
    {url: 'https://%[1]s/production', ca: ca.pem, allow: [loopback], identity: deploy-prod-bot,
     actions: [get_deployment], effects: [read]}
identities:
  deploy-test-bot: {kind: bearer}
  deploy-prod-bot: {kind: bearer}
`

// configure writes the configuration: settings, site file, the shipped
// contracts and the authority of the release service.
func (h *home) configure(contracts, address string, ca []byte) error {
	for _, name := range shipped {
		from := filepath.Join(contracts, name)
		if _, err := os.Stat(filepath.Join(from, "contract.yaml")); err != nil {
			return fmt.Errorf("the contracts of the demo: %w; run make demo in the repository, or give --contracts", err)
		}
		if err := os.CopyFS(filepath.Join(h.places.Contracts(), name), os.DirFS(from)); err != nil {
			return fmt.Errorf("the contracts of the demo: %w", err)
		}
	}
	for path, text := range map[string]string{
		filepath.Join(h.places.Config, "chatelaine.yaml"): settings,
		filepath.Join(h.places.Config, "ca.pem"):          string(ca),
		h.places.SiteFile():                               fmt.Sprintf(site, address),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("the configuration of the demo: %w", err)
		}
	}
	return nil
}

func (h *home) remove() error { return os.RemoveAll(h.dir) }
