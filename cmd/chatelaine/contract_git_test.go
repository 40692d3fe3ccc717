package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// gitRepo is a repository with one shipped contract and a site file that names
// an authority's file.
func gitRepo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	shipped, err := filepath.Abs(filepath.Join("..", "..", "contracts", "read_stock"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "contracts", "targets.yaml"), "targets:\n  stock: {url: 'https://stock.example', identity: stock-open, actions: [read_stock], ca: certs/ca.pem}\nidentities:\n  stock-open: {kind: none}\n")
	write(t, filepath.Join(dir, "contracts", "certs", "ca.pem"), certificate(t))
	if err := os.CopyFS(filepath.Join(dir, "contracts", "read_stock"), os.DirFS(shipped)); err != nil {
		t.Fatal(err)
	}
	runGit(t, dir, "init", "-q")
	commitAll(t, dir)
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func runGit(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b.example"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func commitAll(t *testing.T, dir string) {
	t.Helper()
	runGit(t, dir, "add", "-A")
	runGit(t, dir, "commit", "-q", "-m", "next")
}

func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	doc := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, doc, doc, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// diffIn runs contract diff in a folder.
func diffIn(t *testing.T, dir string, args ...string) (code int, out, errOut string) {
	t.Helper()
	t.Chdir(dir)
	var o, e bytes.Buffer
	a := newApp(strings.NewReader(""), &o, &e, func(string) string { return "" })
	code = a.run(context.Background(), append([]string{"contract", "diff"}, args...))
	return code, o.String(), e.String()
}

// The files that a site file names are those of the revision, and another
// authority under the same name is called out.
func TestDiffReadsTheFilesOfARevision(t *testing.T) {
	dir := gitRepo(t)
	if code, out, errOut := diffIn(t, dir, "HEAD", "HEAD"); code != 0 || out != "nothing changed\n" || errOut != "" {
		t.Fatalf("%d %s %s", code, out, errOut)
	}
	write(t, filepath.Join(dir, "contracts", "certs", "ca.pem"), certificate(t))
	commitAll(t, dir)
	if code, out, _ := diffIn(t, dir, "HEAD~1", "HEAD"); code != 0 || !strings.Contains(out, "[site-trust-changed]") {
		t.Errorf("%d %s", code, out)
	}
	if err := os.Remove(filepath.Join(dir, "contracts", "certs", "ca.pem")); err != nil {
		t.Fatal(err)
	}
	commitAll(t, dir)
	if code, _, errOut := diffIn(t, dir, "HEAD~1", "HEAD"); code != 1 || !strings.Contains(errOut, `HEAD:contracts/targets.yaml:2:`) {
		t.Errorf("%d %s", code, errOut)
	}
}

// A revision is read from any folder of the repository, and inside a hook.
func TestDiffFromAnyFolder(t *testing.T) {
	dir := gitRepo(t)
	t.Setenv("GIT_DIR", ".git")
	t.Setenv("GIT_INDEX_FILE", ".git/index")
	for _, c := range []struct {
		in   string
		args []string
	}{
		{"contracts", []string{"HEAD:./read_stock", "read_stock"}},
		{"contracts", []string{"read_stock"}},
		{"contracts", []string{"HEAD:contracts", "."}},
		{"contracts/read_stock", []string{"."}},
		{"contracts/read_stock", []string{"HEAD:../read_stock/contract.yaml", "contract.yaml"}},
	} {
		code, out, errOut := diffIn(t, filepath.Join(dir, c.in), c.args...)
		if code != 0 || out != "nothing changed\n" || errOut != "" {
			t.Errorf("in %s %v: %d %s%s", c.in, c.args, code, out, errOut)
		}
	}
}

// A link in a commit is not followed, a file beyond the bound not read.
func TestDiffRefusesWhatIsNoPlainFile(t *testing.T) {
	dir := gitRepo(t)
	write(t, filepath.Join(dir, "secret"), "contract: v1\n")
	contract := filepath.Join(dir, "contracts", "read_stock", "contract.yaml")
	if err := os.Remove(contract); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../secret", contract); err != nil {
		t.Fatal(err)
	}
	commitAll(t, dir)
	if code, out, _ := diffIn(t, dir, "HEAD~1", "HEAD"); code != 0 || !strings.Contains(out, "[contract-removed]") {
		t.Errorf("%d %s", code, out)
	}
	if err := os.Remove(contract); err != nil {
		t.Fatal(err)
	}
	write(t, contract, strings.Repeat("# long\n", maxEditionFile/7+1))
	commitAll(t, dir)
	if code, _, errOut := diffIn(t, dir, "HEAD~2", "HEAD"); code != 1 || !strings.Contains(errOut, "bytes") {
		t.Errorf("%d %s", code, errOut)
	}
}

// What cannot be a revision is told as that, and no word of it becomes an
// option of git.
func TestDiffRefusesBadRevisions(t *testing.T) {
	dir := gitRepo(t)
	for _, rev := range []string{"--upload-pack=x", "-c", ":contracts", "HEAD^{tree}", "HEAD..HEAD", "HEAD HEAD", "no\nsuch", "@{-9}"} {
		code, out, errOut := diffIn(t, dir, "--", rev, "contracts")
		if code != exitUsage || out != "" || !strings.Contains(errOut, "neither a file, a folder nor a git revision") {
			t.Errorf("%q: %d %s%s", rev, code, out, errOut)
		}
	}
}
