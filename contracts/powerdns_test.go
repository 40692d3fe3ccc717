package contracts_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"testing"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/testkit"
)

const (
	dnsKey    = "zone-editor-83c1f07a"
	dnsSchema = "/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql"
)

// powerdns is the real product on loopback, with one zone.
type powerdns struct{ url string }

func startPowerDNS(t *testing.T) *powerdns {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("sqlite3", dir+"/db", ".read "+dnsSchema).CombinedOutput(); err != nil {
		t.Fatalf("no database for PowerDNS: %v: %s (run scripts/install-test-deps.sh as root)", err, out)
	}
	port := testkit.FreePort(t)
	write(t, dir, "pdns.conf", fmt.Sprintf(`launch=gsqlite3
gsqlite3-database=%[1]s/db
socket-dir=%[1]s
local-address=127.0.0.1
local-port=%[2]d
api=yes
api-key=%[3]s
webserver=yes
webserver-address=127.0.0.1
webserver-port=%[4]d
webserver-allow-from=127.0.0.1
`, dir, testkit.FreePort(t), dnsKey, port))
	d := &powerdns{url: fmt.Sprintf("http://127.0.0.1:%d/api/v1/servers/localhost", port)}
	testkit.Product(t, "pdns_server", func() bool {
		status, _ := d.ask(t, http.MethodGet, "", nil)
		return status == http.StatusOK
	}, "--config-dir="+dir, "--daemon=no", "--guardian=no", "--disable-syslog", "--write-pid=no")
	d.set(t, http.MethodPost, "/zones", http.StatusCreated, map[string]any{
		"name": "brindle.example.", "kind": "Native", "nameservers": []string{"ns1.brindle.example."},
	})
	d.set(t, http.MethodPatch, "/zones/brindle.example.", http.StatusNoContent, map[string]any{"rrsets": []rrset{
		{Name: "docs.brindle.example.", Type: "CNAME", TTL: 300, Change: "REPLACE", Records: []record{{Content: "pages.elsewhere.example."}}},
		{Name: "api.brindle.example.", Type: "A", TTL: 300, Change: "REPLACE", Records: []record{{Content: "192.0.2.20"}, {Content: "192.0.2.21"}}},
	}})
	return d
}

func (d *powerdns) ask(t *testing.T, method, path string, body []byte) (int, []byte) {
	t.Helper()
	return ask(t, http.DefaultClient, method, d.url+path, body, header{"X-Api-Key", dnsKey})
}

// set changes something without chatelaine.
func (d *powerdns) set(t *testing.T, method, path string, want int, doc any) {
	t.Helper()
	body, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := d.ask(t, method, path, body); status != want {
		t.Fatalf("%s %s: status %d, %s", method, path, status, answer)
	}
}

type record struct {
	Content  string `json:"content"`
	Disabled bool   `json:"disabled"`
}

type rrset struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	TTL     int      `json:"ttl"`
	Change  string   `json:"changetype,omitempty"`
	Records []record `json:"records"`
}

// addresses is what the product itself says of its zone.
func (d *powerdns) addresses(t *testing.T) map[string]string {
	t.Helper()
	status, body := d.ask(t, http.MethodGet, "/zones/brindle.example.", nil)
	var zone struct {
		RRSets []rrset `json:"rrsets"`
	}
	if err := json.Unmarshal(body, &zone); status != http.StatusOK || err != nil {
		t.Fatalf("the zone: status %d, %v", status, err)
	}
	out := map[string]string{}
	for _, set := range zone.RRSets {
		if set.Type == "SOA" || set.Type == "NS" {
			continue
		}
		text := fmt.Sprint(set.Type, " ", set.TTL)
		for _, r := range set.Records {
			text += " " + r.Content
		}
		out[set.Name] = text
	}
	return out
}

func (d *powerdns) site(t *testing.T) string {
	t.Helper()
	return write(t, t.TempDir(), "targets.yaml", fmt.Sprintf(`targets:
  powerdns:
    url: %s
    allow: [loopback]
    identity: powerdns-agents
    actions: [set_dns_record]
    effects: [read, change]
    ask: every_call
identities:
  powerdns-agents: {kind: header, name: X-API-Key, prefix: ""}
lists:
  dns-names:
    storefront: {target: powerdns, with: {zone: brindle.example., name: shop.brindle.example., ttl: 300}}
    docs: {target: powerdns, with: {zone: brindle.example., name: docs.brindle.example., ttl: 300}}
    api: {target: powerdns, with: {zone: brindle.example., name: api.brindle.example., ttl: 300}}
    elsewhere: {target: powerdns, with: {zone: brindle.test., name: shop.brindle.test., ttl: 300}}
`, d.url))
}

// TestSetDNSRecordAtTheRealPowerDNS is a call of three steps, a look, a change
// and a proof, at a system that no one here wrote.
func TestSetDNSRecordAtTheRealPowerDNS(t *testing.T) {
	d := startPowerDNS(t)
	set, problems := actions.LoadSet(d.site(t), onlyContract(t, "set_dns_record"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := d.addresses(t)
	for _, c := range []struct{ name, entry, ipv4, key, failure string }{
		{"a name that pointed nowhere", "storefront", "192.0.2.10", dnsKey, ""},
		{"another address", "storefront", "192.0.2.14", dnsKey, ""},
		{"the same again", "storefront", "192.0.2.14", dnsKey, ""},
		{"an alias", "docs", "192.0.2.14", dnsKey, "RECORD_REFUSED"},
		{"several addresses", "api", "192.0.2.14", dnsKey, "NAME_BALANCED"},
		{"no such zone", "elsewhere", "192.0.2.14", dnsKey, "NOT_FOUND"},
		{"a wrong key", "storefront", "192.0.2.15", "not-the-key", "REMOTE_UNAUTHENTICATED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			proved := perform(t, set, "set_dns_record", fmt.Sprintf(`{"name":%q,"ipv4":%q}`, c.entry, c.ipv4), header{"X-Api-Key", c.key}, time.Now())
			if c.failure != "" {
				wantFailure(t, proved, c.failure)
			} else if proved.Data()["address"] != c.ipv4 || proved.Data()["name"] != "shop.brindle.example." {
				code, _ := proved.Failure()
				t.Errorf("ended %v %s", proved.Data(), code)
			} else {
				want["shop.brindle.example."] = "A 300 " + c.ipv4
			}
			if got := d.addresses(t); !maps.Equal(got, want) {
				t.Errorf("the product holds %v, want %v", got, want)
			}
		})
	}
}
