package vault

import (
	"bytes"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"chatelaine/internal/fault"
)

func TestEveryKind(t *testing.T) {
	v, path := create(t, cheap)
	head := Binding{Kind: KindHeader, Header: "x-api-key", Prefix: "Key ", Scheme: "http", Host: "127.0.0.1", Port: 8080}
	basic := Binding{Kind: KindBasic, Username: "chatelaine", Scheme: "https", Host: "alerts.example", Port: 9093}
	put(t, v, "bearer", planted, bearer())
	put(t, v, "header", planted, head)
	put(t, v, "basic", "correct horse: battery", basic)
	v = reopen(t, path, cheap)
	for _, c := range []struct {
		name  string
		b     Binding
		want  http.Header
		echo  string
		nohit string
	}{
		{"bearer", bearer(), http.Header{"Authorization": {"Bearer " + planted}}, planted, planted[:11]},
		{"header", head, http.Header{"X-Api-Key": {"Key " + planted}}, planted, "Key "},
		{"basic", basic, http.Header{"Authorization": {"Basic Y2hhdGVsYWluZTpjb3JyZWN0IGhvcnNlOiBiYXR0ZXJ5"}}, "Y2hhdGVsYWluZTpjb3JyZWN0IGhvcnNlOiBiYXR0ZXJ5", "Y2hhdGVsYWluZTo="},
	} {
		l, err := v.Lease(t.Context(), c.name)
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		if err := l.Attach(headers(h), madeFor(c.b)); err != nil || !reflect.DeepEqual(h, c.want) {
			t.Errorf("%s: got %v, %v", c.name, h, err)
		}
		if len(l.Scan([]byte("it was "+c.echo))) == 0 || len(l.Scan([]byte("it was "+c.nohit))) != 0 {
			t.Errorf("%s: the search is wrong", c.name)
		}
		err = l.Attach(headers(h), madeFor(c.b))
		wantCode(t, err, fault.Internal)
		if !reflect.DeepEqual(h, c.want) {
			t.Errorf("%s: a second attach changed %v", c.name, h)
		}
		l.Close()
	}
}

func TestPutRefusesSecrets(t *testing.T) {
	v, _ := create(t, cheap)
	basic := Binding{Kind: KindBasic, Username: "u", Scheme: "https", Host: "h.example", Port: 443}
	for _, c := range []struct {
		name, secret string
		short        bool
		b            Binding
	}{
		{"empty", "", true, bearer()},
		{"15 bytes", planted[:15], false, bearer()},
		{"a trailing newline", planted + "\n", false, bearer()},
		{"a newline inside", planted + "\r\nHost: evil.example", false, bearer()},
		{"a NUL", planted + "\x00", false, bearer()},
		{"a tab", planted + "\t.", false, bearer()},
		{"a delete", planted + "\x7f", false, bearer()},
		{"a leading space", " " + planted, false, bearer()},
		{"a trailing space", planted + " ", false, bearer()},
		{"a newline for basic", planted + "\n", false, basic},
		{"too long", strings.Repeat("x", maxSecret+1), false, bearer()},
	} {
		_, err := v.Put(t.Context(), "a", c.b, sec(c.secret), c.short)
		if err == nil {
			t.Errorf("%s is taken", c.name)
		}
		wantErr(t, err, ErrBadIdentity)
	}
	if len(v.List()) != 0 {
		t.Error("a refused secret was kept")
	}
	for _, ok := range []struct {
		secret string
		short  bool
		b      Binding
	}{{planted[:15], true, bearer()}, {planted[:16], false, bearer()}, {"x", true, bearer()}, {" pass word ", true, basic}, {strings.Repeat("x", maxSecret), false, bearer()}} {
		if _, err := v.Put(t.Context(), "a", ok.b, sec(ok.secret), ok.short); err != nil {
			t.Errorf("%d bytes: %v", len(ok.secret), err)
		}
	}
}

func TestPutRefusesNamesAndBindings(t *testing.T) {
	v, _ := create(t, cheap)
	for _, name := range []string{"", "-a", ".a", "a/b", "a b", "a\n", "ä", strings.Repeat("a", 65), "a\x00"} {
		_, err := v.Put(t.Context(), name, bearer(), sec(planted), false)
		wantErr(t, err, ErrBadIdentity)
	}
	for name, change := range map[string]func(b *Binding){
		"no kind":                func(b *Binding) { b.Kind = "" },
		"kind none":              func(b *Binding) { b.Kind = KindNone },
		"unknown kind":           func(b *Binding) { b.Kind = "oauth9" },
		"bearer with a header":   func(b *Binding) { b.Header = "X-Api-Key" },
		"bearer with a user":     func(b *Binding) { b.Username = "u" },
		"header without a name":  func(b *Binding) { b.Kind = KindHeader },
		"header with a bad name": func(b *Binding) { b.Kind, b.Header = KindHeader, "X Y" },
		"header Host":            func(b *Binding) { b.Kind, b.Header = KindHeader, "hOST" },
		"header of a proxy":      func(b *Binding) { b.Kind, b.Header = KindHeader, "Proxy-Authorization" },
		"header with CR prefix":  func(b *Binding) { b.Kind, b.Header, b.Prefix = KindHeader, "X-Key", "a\r\n" },
		"basic without a user":   func(b *Binding) { b.Kind = KindBasic },
		"basic with a colon":     func(b *Binding) { b.Kind, b.Username = KindBasic, "a:b" },
		"http to a name":         func(b *Binding) { b.Scheme = "http" },
		"ftp":                    func(b *Binding) { b.Scheme = "ftp" },
		"no host":                func(b *Binding) { b.Host = "" },
		"host with a dot":        func(b *Binding) { b.Host = "a.example." },
		"host with a path":       func(b *Binding) { b.Host = "a.example/x" },
		"host with a user":       func(b *Binding) { b.Host = "u@a.example" },
		"port 0":                 func(b *Binding) { b.Port = 0 },
		"port 65536":             func(b *Binding) { b.Port = 65536 },
		"path without slash":     func(b *Binding) { b.BasePath = "api" },
		"path with dots":         func(b *Binding) { b.BasePath = "/a/../b" },
		"path with hidden dots":  func(b *Binding) { b.BasePath = "/a/%2E%2e/b" },
		"path with a query":      func(b *Binding) { b.BasePath = "/a?b" },
		"the same pin twice":     func(b *Binding) { b.Pins = []string{"p", "p"} },
		"an empty pin":           func(b *Binding) { b.Pins = []string{"", "p"} },
		"many pins":              func(b *Binding) { b.Pins = strings.Split("abcdefghijklmnopq", "") },
		"a long text":            func(b *Binding) { b.CADigest = strings.Repeat("a", 2000) },
	} {
		b := bearer()
		change(&b)
		_, err := v.Put(t.Context(), "a", b, sec(planted), false)
		if err == nil {
			t.Errorf("%s is taken", name)
		}
		wantErr(t, err, ErrBadIdentity)
	}
}

func TestABindingHasOneSpelling(t *testing.T) {
	v, _ := create(t, cheap)
	b := bearer()
	b.Host, b.BasePath, b.Pins = "Deploy.EXAMPLE", "/api/", []string{"sha256/b", "sha256/a"}
	put(t, v, "a", planted, b)
	got := v.List()[0].Binding
	if got.Host != "deploy.example" || got.BasePath != "/api" || got.Pins[0] != "sha256/a" || b.Pins[0] != "sha256/b" {
		t.Errorf("got %+v", got)
	}
	got.Pins[0] = "changed"
	if v.List()[0].Binding.Pins[0] != "sha256/a" {
		t.Error("a caller can change a binding")
	}
}

func TestAttachComparesTheConnection(t *testing.T) {
	v, path := create(t, cheap)
	b := bearer()
	b.CADigest, b.Pins = "ca-1", []string{"sha256/a", "sha256/b"}
	put(t, v, "a", planted, b)
	v = reopen(t, path, cheap)
	l, err := v.Lease(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct {
		name   string
		change func(m *Made)
		ok     bool
	}{
		{"the same", func(*Made) {}, true},
		{"host in capitals", func(m *Made) { m.Host = "DEPLOY.example" }, true},
		{"deeper base path", func(m *Made) { m.BasePath = "/api/v2" }, true},
		{"base path with a slash", func(m *Made) { m.BasePath = "/api/" }, true},
		{"fewer pins", func(m *Made) { m.Pins = m.Pins[:1] }, true},
		{"other scheme", func(m *Made) { m.Scheme = "http" }, false},
		{"other host", func(m *Made) { m.Host = "evil.example" }, false},
		{"host below", func(m *Made) { m.Host = "x.deploy.example" }, false},
		{"host with a dot", func(m *Made) { m.Host = "deploy.example." }, false},
		{"no host", func(m *Made) { m.Host = "" }, false},
		{"other port", func(m *Made) { m.Port = 8443 }, false},
		{"other CA", func(m *Made) { m.CADigest = "ca-2" }, false},
		{"system roots", func(m *Made) { m.CADigest = "" }, false},
		{"wider base path", func(m *Made) { m.BasePath = "" }, false},
		{"neighbouring base path", func(m *Made) { m.BasePath = "/api2" }, false},
		{"climbing base path", func(m *Made) { m.BasePath = "/api/../admin" }, false},
		{"hidden climbing", func(m *Made) { m.BasePath = "/api/%2e%2e/admin" }, false},
		{"backslash", func(m *Made) { m.BasePath = "/api/..\\admin" }, false},
		{"no pins", func(m *Made) { m.Pins = nil }, false},
		{"another pin", func(m *Made) { m.Pins = []string{"sha256/a", "sha256/c"} }, false},
		{"a peer with another key", func(m *Made) { m.PeerSPKI = []string{"sha256/c"} }, false},
		{"a peer without a key", func(m *Made) { m.PeerSPKI = nil }, false},
		{"nothing", func(m *Made) { *m = Made{} }, false},
	} {
		m := madeFor(b)
		c.change(&m)
		h := http.Header{}
		err := l.Attach(headers(h), m)
		if c.ok {
			if err != nil || len(h) != 1 {
				t.Errorf("%s: got %v", c.name, err)
			}
			continue
		}
		wantCode(t, err, fault.TargetNotAllowed)
		if len(h) != 0 {
			t.Errorf("%s: something was attached", c.name)
		}
	}
}

func TestAPinWhereTheBindingHasNoneIsNarrower(t *testing.T) {
	b := bearer()
	m := madeFor(b)
	m.Pins, m.PeerSPKI = []string{"sha256/a"}, []string{"sha256/a"}
	if err := b.allows(m); err != nil {
		t.Error(err)
	}
}

func TestGenerationsNeverComeAgain(t *testing.T) {
	v, path := create(t, cheap)
	seen := map[uint64]bool{}
	last := uint64(0)
	for range 4 {
		gen := put(t, v, "a", planted, bearer())
		if seen[gen] || gen <= last {
			t.Fatalf("generation %d comes again", gen)
		}
		seen[gen], last = true, gen
		if got, err := v.Generation(t.Context(), "a"); got != gen || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
		if err := v.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		v = reopen(t, path, cheap)
	}
}

// Of two who replace the same generation one wins, and the other changes nothing.
func TestPutReplacesOneGeneration(t *testing.T) {
	v, path := create(t, cheap)
	gen := put(t, v, "a", planted, bearer())
	next, err := v.PutIdentity(t.Context(), "a", bearer(), sec("the-first-one-who-rotates"), PutOptions{Replaces: gen})
	if err != nil || next <= gen {
		t.Fatal(next, err)
	}
	before := read(t, path)
	for _, name := range []string{"a", "nobody"} {
		if _, err := v.PutIdentity(t.Context(), name, bearer(), sec("the-second-one-who-rotates"), PutOptions{Replaces: gen}); !errors.Is(err, ErrReplaced) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !bytes.Equal(read(t, path), before) {
		t.Error("a refused put wrote the file")
	}
	if g, err := v.Generation(t.Context(), "a"); g != next || err != nil {
		t.Error(g, err)
	}
}

func TestALeaseKeepsItsGeneration(t *testing.T) {
	v, _ := create(t, cheap)
	old := put(t, v, "a", planted, bearer())
	l, err := v.Lease(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	now := put(t, v, "a", "another secret of the same", bearer())
	if l.Generation() != old || now <= old {
		t.Errorf("got %d, then %d", l.Generation(), now)
	}
	h := http.Header{}
	if err := l.Attach(headers(h), madeFor(bearer())); err != nil || h.Get("Authorization") != "Bearer "+planted {
		t.Errorf("got %v", err)
	}
	if got := attached(t, v, "a", madeFor(bearer())); got != "Bearer another secret of the same" {
		t.Errorf("got %q", got)
	}
}

func TestDeleteAndUnknownNames(t *testing.T) {
	v, path := create(t, cheap)
	put(t, v, "a", planted, bearer())
	if err := v.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	v = reopen(t, path, cheap)
	wantErr(t, v.Delete(t.Context(), "a"), ErrNoIdentity)
	wantErr(t, v.Rebind(t.Context(), "a", bearer()), ErrNoIdentity)
	_, err := v.Lease(t.Context(), "a")
	wantCode(t, err, fault.IdentityUnavailable)
	_, err = v.Generation(t.Context(), "a")
	wantCode(t, err, fault.IdentityUnavailable)
}

func TestRebind(t *testing.T) {
	v, path := create(t, cheap)
	gen := put(t, v, "a", planted, bearer())
	to := bearer()
	to.Host = "new.example"
	if err := v.Rebind(t.Context(), "a", to); err != nil {
		t.Fatal(err)
	}
	v = reopen(t, path, cheap)
	if got := attached(t, v, "a", madeFor(to)); got != "Bearer "+planted {
		t.Errorf("got %q", got)
	}
	l, err := v.Lease(t.Context(), "a")
	if err != nil || l.Generation() <= gen {
		t.Fatal(l.Generation(), err)
	}
	defer l.Close()
	wantCode(t, l.Attach(headers{}, madeFor(bearer())), fault.TargetNotAllowed)
	to.Port = 0
	wantErr(t, v.Rebind(t.Context(), "a", to), ErrBadIdentity)
}

func TestAnEntryCannotBeMovedOrBoundAnew(t *testing.T) {
	for name, change := range map[string]func(c *contents){
		"another host":   func(c *contents) { it := c.items["a"]; it.binding.Host = "evil.example"; c.items["a"] = it },
		"another kind":   func(c *contents) { it := c.items["a"]; it.binding.Kind = KindHeader; c.items["a"] = it },
		"no pins":        func(c *contents) { it := c.items["a"]; it.binding.Pins = nil; c.items["a"] = it },
		"old generation": func(c *contents) { it := c.items["a"]; it.generation--; c.items["a"] = it },
		"swapped":        func(c *contents) { it := c.items["a"]; it.sealed = c.items["b"].sealed; c.items["a"] = it },
		"not short":      func(c *contents) { it := c.items["a"]; it.short = true; c.items["a"] = it },
	} {
		v, _ := create(t, cheap)
		b := bearer()
		b.Pins = []string{"sha256/a"}
		put(t, v, "a", planted, b)
		put(t, v, "b", planted+"-b", b)
		c := v.contents.clone()
		change(c)
		v.contents = c
		_, err := v.Lease(t.Context(), "a")
		if err == nil {
			t.Errorf("%s: leased", name)
		}
		wantCode(t, err, fault.IdentityUnavailable)
	}
}
