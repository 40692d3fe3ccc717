package vault

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"chatelaine/internal/fault"
)

// allKinds is one binding of each kind that has more than the first form, and a
// text that can be its secret.
func allKinds(t testing.TB) map[string]struct {
	b    Binding
	text string
} {
	t.Helper()
	dir := t.TempDir()
	host := keygen(t, filepath.Join(dir, "host"))
	token := &Place{Scheme: "https", Host: "login.example", Port: 8443, Path: "/oauth2/token", CADigest: "sha256:ca", Pins: []string{"sha256/a", "sha256/b"}}
	web := func(kind string, p ...Param) Binding {
		return Binding{Kind: kind, Scheme: "https", Host: "api.example", Port: 443, BasePath: "/v1", Params: p}
	}
	exchanged := func(kind string, p ...Param) Binding {
		b := web(kind, p...)
		b.Token = token
		return b.clone()
	}
	overSSH := func(kind string, p ...Param) Binding {
		return Binding{Kind: kind, Scheme: schemeSSH, Host: "build.example", Port: 22, User: "deploy", HostKeys: []string{host}, Params: p}
	}
	asked := overSSH(KindSSHCertificate, Param{"principals", "deploy ops"}, Param{"valid", "300"})
	asked.Token = token
	ca, key := newIssuer(t), edKey(t)
	type entry = struct {
		b    Binding
		text string
	}
	return map[string]entry{
		"body":                   {web(KindBody, Param{"form", "token"}), planted},
		"client_certificate":     {web(KindClientCertificate), string(join(ca.leaf(t, key, nil), pkcs8(t, key)))},
		"oauth2_client":          {exchanged(KindOAuth2Client, Param{"audience", "x"}, Param{"auth", "basic"}, Param{"client_id", "abc"}, Param{"scopes", "a b"}), planted},
		"oauth2_refresh":         {exchanged(KindOAuth2Refresh, Param{"auth", "none"}, Param{"client_id", "abc"}), planted},
		"github_app":             {exchanged(KindGitHubApp, Param{"app_id", "12"}, Param{"installation", "34"}, Param{"permissions", `{"contents":"write"}`}), string(pkcs8(t, rsaKeys[2048]()))},
		"jwt_bearer":             {exchanged(KindJWTBearer, Param{"algorithm", "RS256"}, Param{"issuer", "x"}), string(pkcs8(t, rsaKeys[2048]()))},
		"registry_token":         {exchanged(KindRegistryToken, Param{"service", "registry.example"}, Param{"username", "bot"}), planted},
		"ssh_key":                {overSSH(KindSSHKey), string(read(t, filepath.Join(dir, "host")))},
		"ssh_certificate":        {overSSH(KindSSHCertificate, Param{"force_command", "true"}, Param{"principals", "deploy"}, Param{"valid", "60"}), string(read(t, filepath.Join(dir, "host")))},
		"ssh_certificate, asked": {asked, planted},
	}
}

func TestEveryKindIsKept(t *testing.T) {
	t.Parallel()
	v, path := create(t, cheap)
	all := allKinds(t)
	for name, k := range all {
		put(t, v, strings.ReplaceAll(name, ", ", "-"), k.text, k.b)
	}
	v = reopen(t, path, cheap)
	for name, k := range all {
		name = strings.ReplaceAll(name, ", ", "-")
		for _, i := range v.List() {
			if i.Name == name && !reflect.DeepEqual(i.Binding, k.b) {
				t.Errorf("%s: got %+v, put %+v", name, i.Binding, k.b)
			}
		}
		l, err := v.Lease(t.Context(), name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !k.b.Exchanges() && len(l.Scan([]byte(k.text))) == 0 {
			t.Errorf("%s: its own secret is not found", name)
		}
		l.Close()
	}
}

// TestASecretIsMovedWithNoPart changes each part of each binding behind the
// vault's back: the entry does not open.
func TestASecretIsMovedWithNoPart(t *testing.T) {
	t.Parallel()
	for name, k := range allKinds(t) {
		v, _ := create(t, cheap)
		put(t, v, "a", k.text, k.b)
		good := v.contents
		for part, change := range parts(k.b) {
			c := good.clone()
			it := c.items["a"]
			it.binding = it.binding.clone()
			change(&it.binding)
			c.items["a"] = it
			v.contents = c
			if err := readyOnce(t, v); err == nil {
				t.Errorf("%s: used with another %s", name, part)
			} else if !k.b.Exchanges() {
				wantCode(t, err, fault.IdentityUnavailable)
			}
		}
		v.contents = good
		if l, err := v.Lease(t.Context(), "a"); err != nil {
			t.Errorf("%s: the good one does not open: %v", name, err)
		} else {
			l.Close()
		}
	}
}

// readyOnce leases and makes ready; nothing may be sent for that.
func readyOnce(t *testing.T, v *Vault) error {
	t.Helper()
	l, err := v.Lease(t.Context(), "a")
	if err != nil {
		return err
	}
	defer l.Close()
	sent := false
	err = l.Ready(t.Context(), Narrow{}, func(context.Context, TokenRequest, TokenCredential, func(TokenAnswer) error) error {
		sent = true
		return errors.New("sent")
	})
	if sent {
		t.Error("the secret was to be sent")
	}
	return err
}

// parts are the ways in which a binding can differ in one part.
func parts(b Binding) map[string]func(b *Binding) {
	out := map[string]func(b *Binding){
		"kind":           func(b *Binding) { b.Kind = KindBearer },
		"scheme":         func(b *Binding) { b.Scheme = "http" },
		"host":           func(b *Binding) { b.Host = "evil.example" },
		"port":           func(b *Binding) { b.Port++ },
		"user":           func(b *Binding) { b.User += "x" },
		"host key added": func(b *Binding) { b.HostKeys = append(b.HostKeys, "x") },
		"CA":             func(b *Binding) { b.CADigest += "x" },
		"pin":            func(b *Binding) { b.Pins = append(b.Pins, "x") },
		"base path":      func(b *Binding) { b.BasePath += "/x" },
		"constant added": func(b *Binding) { b.Params = append(b.Params, Param{"zz", "1"}) },
		"token place": func(b *Binding) {
			if b.Token == nil {
				b.Token = &Place{}
			} else {
				b.Token = nil
			}
		},
	}
	for i, p := range b.Params {
		out["constant "+p.Name] = func(b *Binding) { b.Params[i].Value += "x" }
		out["name of "+p.Name] = func(b *Binding) { b.Params[i].Name += "x" }
		out[p.Name+" gone"] = func(b *Binding) { b.Params = append(b.Params[:i:i], b.Params[i+1:]...) }
	}
	if len(b.HostKeys) > 0 {
		out["host key"] = func(b *Binding) { b.HostKeys[0] += "x" }
	}
	if b.Token != nil {
		out["token scheme"] = func(b *Binding) { b.Token.Scheme = "http" }
		out["token host"] = func(b *Binding) { b.Token.Host = "evil.example" }
		out["token port"] = func(b *Binding) { b.Token.Port++ }
		out["token path"] = func(b *Binding) { b.Token.Path += "/x" }
		out["token CA"] = func(b *Binding) { b.Token.CADigest += "x" }
		out["token pin"] = func(b *Binding) { b.Token.Pins[0] += "x" }
		out["token pins gone"] = func(b *Binding) { b.Token.Pins = nil }
	}
	return out
}

// TestTheSiteFileNarrowsAndNeverWidens asks the binding of each kind about each
// part of what a site file may say.
func TestTheSiteFileNarrowsAndNeverWidens(t *testing.T) {
	t.Parallel()
	other := keygen(t, filepath.Join(t.TempDir(), "other"))
	for name, k := range allKinds(t) {
		if err := k.b.FitsSite(k.b); err != nil {
			t.Errorf("%s: the same does not fit: %v", name, err)
		}
		for part, change := range parts(k.b) {
			now := k.b.clone()
			change(&now)
			err := k.b.FitsSite(now)
			switch narrower := part == "base path" && now.Scheme == "https" || part == "pin" && now.Scheme == "https"; {
			case narrower && err != nil:
				t.Errorf("%s: a narrower %s does not fit: %v", name, part, err)
			case !narrower && err == nil && changes(k.b, part):
				t.Errorf("%s: another %s fits", name, part)
			case !narrower && err != nil:
				wantCode(t, err, fault.TargetNotAllowed)
			}
		}
	}
	b := allKinds(t)["ssh_key"].b
	b.HostKeys = append(b.HostKeys, other)
	b = b.normal()
	for n := range 3 {
		now := b.clone()
		now.HostKeys = now.HostKeys[:n]
		if err := b.FitsSite(now); (err == nil) != (n > 0) {
			t.Errorf("%d of 2 host keys: %v", n, err)
		}
	}
	token := allKinds(t)["oauth2_client"].b
	fewer := token.clone()
	fewer.Token.Pins = fewer.Token.Pins[:1]
	if err := token.FitsSite(fewer); err != nil {
		t.Errorf("fewer pins of the token place: %v", err)
	}
	wantCode(t, fewer.FitsSite(token), fault.TargetNotAllowed)
}

// changes says whether a part means anything for the kind: no connection over
// HTTPS has a user, none over SSH a path.
func changes(b Binding, part string) bool {
	switch part {
	case "user", "host key added":
		return kindRules[b.Kind].ssh && part != "host key added" || part == "host key added" && kindRules[b.Kind].ssh
	case "CA", "pin", "base path":
		return !kindRules[b.Kind].ssh
	}
	return true
}

// TestTheTokenPlaceIsCompared changes each part of a connection to the place of
// the exchange.
func TestTheTokenPlaceIsCompared(t *testing.T) {
	b := allKinds(t)["oauth2_client"].b
	good := Made{Scheme: "https", Host: "login.example", Port: 8443, BasePath: "/oauth2/token", CADigest: "sha256:ca", Pins: []string{"sha256/a", "sha256/b"}, PeerSPKI: []string{"sha256/x", "sha256/b"}}
	for _, c := range []struct {
		name   string
		change func(m *Made)
		ok     bool
	}{
		{"the same", func(*Made) {}, true},
		{"host in capitals", func(m *Made) { m.Host = "LOGIN.example" }, true},
		{"fewer pins", func(m *Made) { m.Pins = m.Pins[1:] }, true},
		{"the target", func(m *Made) { *m = madeFor(b) }, false},
		{"scheme", func(m *Made) { m.Scheme = "http" }, false},
		{"host", func(m *Made) { m.Host = "evil.example" }, false},
		{"host with a dot", func(m *Made) { m.Host += "." }, false},
		{"port", func(m *Made) { m.Port = 443 }, false},
		{"path", func(m *Made) { m.BasePath = "/oauth2" }, false},
		{"deeper path", func(m *Made) { m.BasePath += "/x" }, false},
		{"path with a slash", func(m *Made) { m.BasePath += "/" }, false},
		{"CA", func(m *Made) { m.CADigest = "" }, false},
		{"no pins", func(m *Made) { m.Pins = nil }, false},
		{"another pin", func(m *Made) { m.Pins = []string{"sha256/a", "sha256/c"} }, false},
		{"a peer without a pinned key", func(m *Made) { m.PeerSPKI = []string{"sha256/x"} }, false},
	} {
		m := good
		c.change(&m)
		err := b.allowsToken(m)
		if (err == nil) != c.ok {
			t.Errorf("%s: got %v", c.name, err)
		}
		if !c.ok {
			wantCode(t, err, fault.TargetNotAllowed)
		}
	}
	wantCode(t, bearer().allowsToken(good), fault.TargetNotAllowed)
}

// TestHTTPSAndSSHAreKeptApart asks each for the other's credential.
func TestHTTPSAndSSHAreKeptApart(t *testing.T) {
	all := allKinds(t)
	b := all["ssh_key"].b
	l := leaseOf(t, "host", b, []byte(all["ssh_key"].text))
	wantCode(t, l.Attach(headers{}, Made{Scheme: "ssh", Host: b.Host, Port: b.Port}), fault.TargetNotAllowed)
	if c, err := l.ClientCertificate(Made{Scheme: "ssh", Host: b.Host, Port: b.Port}); c != nil || err != nil {
		t.Errorf("got %v, %v", c, err)
	}
	web := leaseOf(t, "a", bearer(), []byte(planted))
	_, err := web.SSHSigner(t.Context(), MadeSSH{Address: "deploy.example:443"}, "", nil)
	wantCode(t, err, fault.TargetNotAllowed)
	for _, l := range []*Lease{NoLease(), nil} {
		if _, err := l.SSHSigner(t.Context(), MadeSSH{}, "", nil); err == nil {
			t.Error("nobody signs")
		}
	}
}

func TestPutRefusesBindingsOfTheNewKinds(t *testing.T) {
	t.Parallel()
	v, _ := create(t, cheap)
	all := allKinds(t)
	host := all["ssh_key"].b.HostKeys[0]
	long := strings.Repeat("x", maxParamValue+1)
	for name, c := range map[string]struct {
		kind   string
		change func(b *Binding)
	}{
		"no constant":              {"body", func(b *Binding) { b.Params = nil }},
		"two places in the body":   {"body", func(b *Binding) { b.Params = []Param{{"form", "a"}, {"json", "/a"}} }},
		"an unknown constant":      {"body", func(b *Binding) { b.Params = append(b.Params, Param{"zz", "1"}) }},
		"the same constant twice":  {"body", func(b *Binding) { b.Params = append(b.Params, b.Params[0]) }},
		"an empty constant":        {"body", func(b *Binding) { b.Params[0].Value = "" }},
		"a control character":      {"oauth2_client", func(b *Binding) { b.Params[0].Value = "a\nb" }},
		"a very long constant":     {"oauth2_client", func(b *Binding) { b.Params[0].Value = long }},
		"no client id":             {"oauth2_client", func(b *Binding) { b.Params = nil }},
		"no place":                 {"oauth2_client", func(b *Binding) { b.Token = nil }},
		"place: http":              {"oauth2_client", func(b *Binding) { b.Token.Scheme = "http" }},
		"place: ssh":               {"oauth2_client", func(b *Binding) { b.Token.Scheme = "ssh" }},
		"place: no host":           {"oauth2_client", func(b *Binding) { b.Token.Host = "" }},
		"place: port 0":            {"oauth2_client", func(b *Binding) { b.Token.Port = 0 }},
		"place: dots":              {"oauth2_client", func(b *Binding) { b.Token.Path = "/a/../b" }},
		"place: two slashes":       {"oauth2_client", func(b *Binding) { b.Token.Path = "/a//" }},
		"place: an empty pin":      {"oauth2_client", func(b *Binding) { b.Token.Pins = []string{""} }},
		"place: a long CA":         {"oauth2_client", func(b *Binding) { b.Token.CADigest = long }},
		"a place that is not used": {"body", func(b *Binding) { b.Token = &Place{Scheme: "https", Host: "a.example", Port: 1} }},
		"a certificate in clear":   {"client_certificate", func(b *Binding) { b.Scheme, b.Host = "http", "127.0.0.1" }},
		"a header":                 {"body", func(b *Binding) { b.Header = "X-Key" }},
		"an SSH user":              {"body", func(b *Binding) { b.User = "root" }},
		"a host key":               {"body", func(b *Binding) { b.HostKeys = []string{host} }},
		"HTTPS with an SSH kind":   {"ssh_key", func(b *Binding) { b.Scheme = "https" }},
		"SSH with another kind":    {"body", func(b *Binding) { b.Scheme = "ssh" }},
		"no host keys":             {"ssh_key", func(b *Binding) { b.HostKeys = nil }},
		"no key at all":            {"ssh_key", func(b *Binding) { b.HostKeys = []string{"ssh-ed25519 AAAA"} }},
		"a key with a comment":     {"ssh_key", func(b *Binding) { b.HostKeys = []string{host + " me@here"} }},
		"a key with options":       {"ssh_key", func(b *Binding) { b.HostKeys = []string{"cert-authority " + host} }},
		"many keys":                {"ssh_key", func(b *Binding) { b.HostKeys = strings.Split("abcdefghijklmnopq", "") }},
		"no user":                  {"ssh_key", func(b *Binding) { b.User = "" }},
		"a user with a host":       {"ssh_key", func(b *Binding) { b.User = "root@evil" }},
		"a path":                   {"ssh_key", func(b *Binding) { b.BasePath = "/x" }},
		"a CA":                     {"ssh_key", func(b *Binding) { b.CADigest = "x" }},
		"pins":                     {"ssh_key", func(b *Binding) { b.Pins = []string{"x"} }},
		"a host in brackets":       {"ssh_key", func(b *Binding) { b.Host = "a/b" }},
		"no principals":            {"ssh_certificate", func(b *Binding) { b.Params = b.Params[:1] }},
		"principals twice":         {"ssh_certificate", func(b *Binding) { b.Params[1].Value = "a a" }},
		"principals unsorted":      {"ssh_certificate", func(b *Binding) { b.Params[1].Value = "b a" }},
		"two spaces":               {"ssh_certificate", func(b *Binding) { b.Params[1].Value = "a  b" }},
		"a comma":                  {"ssh_certificate", func(b *Binding) { b.Params[1].Value = "a,b" }},
		"a second":                 {"ssh_certificate", func(b *Binding) { b.Params[2].Value = "1" }},
		"a day":                    {"ssh_certificate", func(b *Binding) { b.Params[2].Value = "86400" }},
		"minutes":                  {"ssh_certificate", func(b *Binding) { b.Params[2].Value = "5m" }},
		"a leading zero":           {"ssh_certificate", func(b *Binding) { b.Params[2].Value = "0300" }},
		"force_command: no":        {"ssh_certificate", func(b *Binding) { b.Params[0].Value = "no" }},
	} {
		b := all[c.kind].b.clone()
		c.change(&b)
		_, err := v.Put(t.Context(), "a", b, sec(all[c.kind].text), false)
		if err == nil {
			t.Errorf("%s is taken", name)
		}
		wantErr(t, err, ErrBadIdentity)
	}
}

func TestPutRefusesKeysOfSSH(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v, _ := create(t, cheap)
	b := allKinds(t)["ssh_key"].b
	pub := keygen(t, filepath.Join(dir, "small"), "-t", "rsa", "-b", "2048")
	keygen(t, filepath.Join(dir, "closed"), "-t", "ed25519", "-N", "a passphrase")
	keygen(t, filepath.Join(dir, "closed2"), "-t", "ecdsa", "-m", "PEM", "-N", "a passphrase")
	for name, c := range map[string]struct{ text, rule string }{
		"the public half":        {pub, ".pub"},
		"no key":                 {planted, ".pub"},
		"RSA of 2048":            {string(read(t, filepath.Join(dir, "small"))), "3072"},
		"with a passphrase":      {string(read(t, filepath.Join(dir, "closed"))), "ssh-keygen -p"},
		"with a passphrase, PEM": {string(read(t, filepath.Join(dir, "closed2"))), "ssh-keygen -p"},
		"cut":                    {string(read(t, filepath.Join(dir, "small"))[:200]), ".pub"},
		"two keys":               {string(join(pkcs8(t, edKey(t)), pkcs8(t, edKey(t)))), "one private key"},
	} {
		_, err := v.Put(t.Context(), "a", b, sec(c.text), false)
		wantErr(t, err, ErrBadIdentity)
		if err == nil || !strings.Contains(err.Error(), c.rule) {
			t.Errorf("%s: got %v, want %q in it", name, err, c.rule)
		}
	}
}
