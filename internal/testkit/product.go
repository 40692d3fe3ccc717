package testkit

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"chatelaine/internal/contracttest/upstream"
)

// Product starts an installed program that no one here wrote, waits until it is
// ready and ends it after the test. Where it ends before, the test fails with what
// it said; so does one that fails for another reason.
func Product(t *testing.T, program string, ready func() bool, args ...string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		// Debian keeps servers where only root looks.
		path, err = exec.LookPath(filepath.Join("/usr/sbin", program))
	}
	if err != nil {
		t.Fatalf("%s is not installed: run scripts/install-test-deps.sh as root", program)
	}
	logFile := filepath.Join(t.TempDir(), "log")
	log, err := os.Create(logFile)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the program has its own descriptor
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var end error // read after ended is closed
	ended := make(chan struct{})
	go func() {
		end = cmd.Wait()
		close(ended)
	}()
	said := func() []byte {
		text, _ := os.ReadFile(logFile)
		return text
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("%s said:\n%s", program, said())
		}
	})
	Until(t, program, func() bool {
		select {
		case <-ended:
			t.Fatalf("%s ended: %v", program, end)
		default:
		}
		return ready()
	})
}

// LeafFiles writes leaf.pem and leaf.key, an identity for localhost and 127.0.0.1
// that an authority signed, into a folder of a product.
func LeafFiles(t testing.TB, ca *upstream.CA, dir string) {
	t.Helper()
	leaf := Leaf(t, ca)
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"leaf.pem": {Type: "CERTIFICATE", Bytes: leaf.Certificate[0]},
		"leaf.key": {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
