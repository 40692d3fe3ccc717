package contracts_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"chatelaine/internal/actions"
	"chatelaine/internal/testkit"
)

const (
	registryUser     = "chatelaine"
	registryPassword = "pull-only-5b90e1d4"
	ociManifest      = "application/vnd.oci.image.manifest.v1+json"
	ociIndex         = "application/vnd.oci.image.index.v1+json"
)

// registry is a real container registry on loopback with TLS of its own and a
// password.
type registry struct {
	url    string
	caFile string
	client *http.Client
}

func startRegistry(t *testing.T) *registry {
	t.Helper()
	dir := t.TempDir()
	client := overTLS(t, writeTLS(t, dir))
	hash, err := bcrypt.GenerateFromPassword([]byte(registryPassword), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "htpasswd", fmt.Sprintf("%s:%s\n", registryUser, hash))
	address := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	config := write(t, dir, "registry.yml", fmt.Sprintf(`version: 0.1
log: {level: warn}
storage: {filesystem: {rootdirectory: %[1]s/data}}
http: {addr: "%[2]s", tls: {certificate: %[1]s/leaf.pem, key: %[1]s/leaf.key}}
auth: {htpasswd: {realm: test, path: %[1]s/htpasswd}}
`, dir, address))
	r := &registry{url: "https://" + address + "/v2", caFile: filepath.Join(dir, "ca.pem"), client: client}
	testkit.Product(t, "docker-registry", func() bool {
		status, _ := r.ask(t, http.MethodGet, "/", nil)
		return status == http.StatusOK
	}, "serve", config)
	return r
}

func (r *registry) ask(t *testing.T, method, path string, body []byte, more ...string) (int, []byte) {
	t.Helper()
	return ask(t, r.client, method, r.url+path, body, basic(registryUser, registryPassword), more...)
}

// content is what a registry keeps, and its name by what it holds.
type content struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int    `json:"size"`
}

func contentOf(mediaType string, b []byte) content {
	return content{mediaType, fmt.Sprintf("sha256:%x", sha256.Sum256(b)), len(b)}
}

// pushBlob keeps bytes in the repository. The upload's place is asked for with
// the client's own request, because its address is a header.
func (r *registry) pushBlob(t *testing.T, repository, mediaType string, b []byte) content {
	t.Helper()
	c := contentOf(mediaType, b)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/"+repository+"/blobs/uploads/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	secret := basic(registryUser, registryPassword)
	req.Header.Set(secret.name, secret.value)
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	place := resp.Header.Get("Location")
	if resp.StatusCode != http.StatusAccepted || place == "" {
		t.Fatalf("no place for a blob: status %d", resp.StatusCode)
	}
	status, answer := ask(t, r.client, http.MethodPut, place+"&digest="+c.Digest, b, secret, "Content-Type", "application/octet-stream")
	if status != http.StatusCreated {
		t.Fatalf("a blob is refused: status %d, %s", status, answer)
	}
	return c
}

// pushTag keeps a manifest or an index under a tag.
func (r *registry) pushTag(t *testing.T, repository, tag, mediaType string, doc map[string]any) content {
	t.Helper()
	doc["schemaVersion"], doc["mediaType"] = 2, mediaType
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	status, answer := r.ask(t, http.MethodPut, "/"+repository+"/manifests/"+tag, b, "Content-Type", mediaType)
	if status != http.StatusCreated {
		t.Fatalf("the tag %s is refused: status %d, %s", tag, status, answer)
	}
	return contentOf(mediaType, b)
}

// pushImage keeps an image of one layer under a tag.
func (r *registry) pushImage(t *testing.T, repository, tag, layer string) content {
	t.Helper()
	return r.pushTag(t, repository, tag, ociManifest, map[string]any{
		"config": r.pushBlob(t, repository, "application/vnd.oci.image.config.v1+json", []byte(`{"architecture":"amd64","os":"linux"}`)),
		"layers": []content{r.pushBlob(t, repository, "application/vnd.oci.image.layer.v1.tar", []byte(layer))},
	})
}

func (r *registry) site(t *testing.T) string {
	t.Helper()
	return write(t, t.TempDir(), "targets.yaml", fmt.Sprintf(`targets:
  registry:
    url: %s
    ca: %s
    allow: [loopback]
    identity: registry-reader
    actions: [get_image_digest]
identities:
  registry-reader: {kind: basic, username: %s}
lists:
  registry-images:
    storefront: {target: registry, with: {repository: brindle/storefront}}
    empty: {target: registry, with: {repository: brindle/empty}}
`, r.url, r.caFile, registryUser))
}

// TestGetImageDigestAtARealRegistry reads what a registry that no one here wrote
// says in its headers.
func TestGetImageDigestAtARealRegistry(t *testing.T) {
	r := startRegistry(t)
	set, problems := actions.LoadSet(r.site(t), onlyContract(t, "get_image_digest"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	const repository = "brindle/storefront"
	old := r.pushImage(t, repository, "2.14.2", "one layer")
	image := r.pushImage(t, repository, "2.14.3", "another layer")
	index := r.pushTag(t, repository, "stable", ociIndex, map[string]any{"manifests": []content{old}})
	get := func(image, tag, password string) func(*testing.T) (string, string, string) {
		return func(t *testing.T) (digest, kind, failure string) {
			proved := perform(t, set, "get_image_digest", fmt.Sprintf(`{"image":%q,"tag":%q}`, image, tag), basic(registryUser, password), time.Now())
			code, _ := proved.Failure()
			digest, _ = proved.Data()["digest"].(string)
			kind, _ = proved.Data()["kind"].(string)
			return digest, kind, code
		}
	}
	for _, c := range []struct {
		name                  string
		get                   func(*testing.T) (string, string, string)
		digest, kind, failure string
	}{
		{"an image", get("storefront", "2.14.3", registryPassword), image.Digest, "image", ""},
		{"another image", get("storefront", "2.14.2", registryPassword), old.Digest, "image", ""},
		{"an index", get("storefront", "stable", registryPassword), index.Digest, "index", ""},
		{"no such tag", get("storefront", "2.15.0", registryPassword), "", "", "NOT_FOUND"},
		{"an empty repository", get("empty", "stable", registryPassword), "", "", "NOT_FOUND"},
		{"a wrong password", get("storefront", "stable", "not-the-password"), "", "", "REMOTE_UNAUTHENTICATED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			digest, kind, failure := c.get(t)
			if digest != c.digest || kind != c.kind || failure != c.failure {
				t.Errorf("got %q %q %q, want %q %q %q", digest, kind, failure, c.digest, c.kind, c.failure)
			}
		})
	}
	t.Run("a tag that was moved", func(t *testing.T) {
		moved := r.pushImage(t, repository, "stable", "a third layer")
		if digest, kind, _ := get("storefront", "stable", registryPassword)(t); digest != moved.Digest || kind != "image" {
			t.Errorf("got %q %q, want %q", digest, kind, moved.Digest)
		}
	})
}
