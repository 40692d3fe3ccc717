package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/vault"
	"chatelaine/internal/vault/execsource"
	"chatelaine/internal/vault/kv"
	"chatelaine/internal/vault/unitcreds"
)

// The kinds of vault.sources.
const (
	sourceKV          = "kv"
	sourceExec        = "exec"
	sourceCredentials = "credentials"
)

const (
	// maxSources bounds what one vault asks; a site has one or two.
	maxSources = 16
	// defaultSourceTimeout is enough for a login and a read over a network, and
	// for a program that asks one; longer, and calls stand in a row behind it.
	defaultSourceTimeout = 5 * time.Second
	shortestFetch        = 500 * time.Millisecond
	longestFetch         = 30 * time.Second // what a whole step may take
	// shortestKeep is twice the pace at which values are renewed in the background.
	shortestKeep = 10 * time.Second
	longestKeep  = 24 * time.Hour
	// maxCAFile is far above any bundle of roots for one server.
	maxCAFile = 256 << 10
	// maxNamespace and maxRole bound what goes into a header and a request.
	maxNamespace = 128
	maxRole      = 256
)

// sourceConfig is one of vault.sources.
type sourceConfig struct {
	Name, Kind    string
	Timeout, Keep time.Duration

	Program  execsource.Options // exec
	envNames []string
	Server   kv.Options // kv
	caDigest string
}

var sourceKeys = []string{"kv", "exec", "credentials", "timeout", "keep", "env", "exits", "first_line"}

// sources reads vault.sources. Each is exactly one of the kinds.
func (r *reader) sources(n *strictyaml.Node) {
	if n == nil || !r.f.Is(n, strictyaml.Mapping, "vault.sources") {
		return
	}
	r.said("vault.sources")
	if len(n.Members) > maxSources {
		r.f.Report(n.Pos, "range", "", "vault.sources has more than %d entries", maxSources)
	}
	for _, m := range n.Members {
		if !vault.ValidSourceName(m.Key) {
			r.f.Report(m.KeyPos, "name", "such as pass or bao", "the name of a source is 1 to 32 of a-z, 0-9, '-' and '_', and begins with a letter or digit")
			continue
		}
		if s, ok := r.source("vault.sources."+m.Key, m.Key, m.Value); ok {
			r.c.Sources = append(r.c.Sources, s)
			r.said("vault.sources." + m.Key)
		}
	}
	slices.SortFunc(r.c.Sources, func(a, b sourceConfig) int { return strings.Compare(a.Name, b.Name) })
}

func (r *reader) source(key, name string, n *strictyaml.Node) (sourceConfig, bool) {
	before := r.f.Count()
	s := sourceConfig{Name: name, Timeout: defaultSourceTimeout, Keep: vault.DefaultSourceKeep}
	if !r.f.Map(n, key, sourceKeys...) {
		return s, false
	}
	var kinds []string
	for _, k := range []string{sourceKV, sourceExec, sourceCredentials} {
		if n.Get(k) != nil {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) != 1 {
		r.f.Report(n.Pos, "kind", "write one of kv, exec and credentials", "%s must say exactly one kind of source", key)
		return s, false
	}
	s.Kind = kinds[0]
	if v := n.Get("timeout"); v != nil {
		if d, ok := r.f.Duration(v, key+".timeout", shortestFetch, longestFetch); ok {
			s.Timeout = d
		}
	}
	if v := n.Get("keep"); v != nil {
		if d, ok := r.f.Duration(v, key+".keep", shortestKeep, longestKeep); ok {
			s.Keep = d
		}
	}
	if s.Kind != sourceExec {
		for _, k := range []string{"env", "exits", "first_line"} {
			if v := n.Get(k); v != nil {
				r.f.Report(v.Pos, "kind", "leave it out", "%s.%s is for a source of kind exec", key, k)
			}
		}
	}
	switch s.Kind {
	case sourceKV:
		r.kvSource(key+".kv", n.Get(sourceKV), &s)
	case sourceExec:
		r.execSource(key, n, &s)
	case sourceCredentials:
		if v := n.Get(sourceCredentials); v.Kind != strictyaml.Bool || !v.Truth {
			r.f.Report(v.Pos, "type", "write credentials: true", "%s.credentials must be true", key)
		}
	}
	return s, r.f.Count() == before
}

// execSource reads a program with its arguments.
func (r *reader) execSource(key string, n *strictyaml.Node, s *sourceConfig) {
	argv := n.Get(sourceExec)
	s.Program = execsource.Options{Name: s.Name, Timeout: s.Timeout, Exits: map[int]string{}}
	before := r.f.Count()
	s.Program.Argv = r.texts(argv, key+".exec")
	if r.f.Count() > before {
		return
	}
	if err := execsource.CheckArgv(s.Program.Argv); err != nil {
		r.f.Report(argv.Pos, "program", `such as [/usr/bin/pass, show, "{ref}"]`, "%s.exec: %v", key, err)
	}
	if v := n.Get("env"); v != nil {
		for _, item := range r.f.List(v, key+".env") {
			name, ok := r.f.Text(item, "an entry of "+key+".env")
			if !ok {
				continue
			}
			if err := execsource.CheckVariable(name); err != nil {
				r.f.Report(item.Pos, "variable", "write the name of a variable, such as GNUPGHOME; its value is the daemon's own", "%s.env: %v", key, err)
				continue
			}
			s.envNames = append(s.envNames, name)
		}
	}
	s.Program.Env = environmentOf(append([]string{"HOME"}, s.envNames...))
	if v := n.Get("first_line"); v != nil {
		if yes, ok := r.f.Flag(v, key+".first_line"); ok {
			s.Program.FirstLine = yes
		}
	}
	r.exits(key+".exits", n.Get("exits"), s.Program.Exits)
}

// environmentOf takes variables out of the daemon's own environment, as it is
// before the daemon cleans it. One that is not set is left out.
func environmentOf(names []string) []string {
	var out []string
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// exits reads what the exit status of a program means.
func (r *reader) exits(key string, n *strictyaml.Node, into map[int]string) {
	words := []string{"absent", "locked", "denied"}
	if n == nil || !r.f.Map(n, key, words...) {
		return
	}
	const most = 125 // what is above is the shell's and the system's
	for _, word := range words {
		v := n.Get(word)
		if v == nil {
			continue
		}
		for _, item := range r.f.List(v, key+"."+word) {
			code, ok := r.f.Whole(item, "an entry of "+key+"."+word, 1, most)
			if !ok {
				continue
			}
			if into[int(code)] != "" {
				r.f.Report(item.Pos, "repeated", "", "exit status %d stands twice in %s", code, key)
				continue
			}
			into[int(code)] = word
		}
	}
}

// kvSource reads a server and the way to log in.
func (r *reader) kvSource(key string, n *strictyaml.Node, s *sourceConfig) {
	if !r.f.Map(n, key, "address", "ca", "mount", "namespace", "approle", "token") {
		return
	}
	s.Server = kv.Options{Name: s.Name, Timeout: s.Timeout}
	if v := r.f.Require(n, key, "address"); v != nil {
		if text, ok := r.f.Text(v, key+".address"); ok {
			if _, err := kv.CheckAddress(text); err != nil {
				r.f.Report(v.Pos, "address", "such as https://bao.example:8200", "%s.address: %v", key, err)
			}
			s.Server.Address = strings.TrimSuffix(text, "/")
		}
	}
	r.sourceCA(key+".ca", n.Get("ca"), s)
	path := func(name string, into *string) {
		if v := n.Get(name); v != nil {
			if text, ok := r.f.Text(v, key+"."+name); ok {
				if err := kv.CheckPath(text); err != nil || len(text) > maxNamespace {
					r.f.Report(v.Pos, "path", "such as team/kv", "%s.%s: %v", key, name, errors.Join(err, tooLong(text, maxNamespace)))
				}
				*into = text
			}
		}
	}
	path("mount", &s.Server.Mount)
	path("namespace", &s.Server.Namespace)
	r.kvLogin(key, n, s)
}

func tooLong(text string, most int) error {
	if len(text) > most {
		return fmt.Errorf("it has more than %d bytes", most)
	}
	return nil
}

// kvLogin reads approle or token: exactly one.
func (r *reader) kvLogin(key string, n *strictyaml.Node, s *sourceConfig) {
	role, token := n.Get("approle"), n.Get("token")
	if (role == nil) == (token == nil) {
		r.f.Report(n.Pos, "login", "write approle: {role_id: …}, or token: true", "%s must say exactly one way to log in", key)
		return
	}
	if token != nil {
		if token.Kind != strictyaml.Bool || !token.Truth {
			r.f.QuoteNothing() // somebody may have written the token here
			r.f.Report(token.Pos, "type", "write token: true, and put the token with chatelaine vault source put "+s.Name, "%s.token must be true; a token never stands in this file", key)
		}
		return
	}
	if !r.f.Map(role, key+".approle", "role_id", "mount") {
		return
	}
	if v := r.f.Require(role, key+".approle", "role_id"); v != nil {
		if text, ok := r.f.Text(v, key+".approle.role_id"); ok {
			if text == "" || len(text) > maxRole || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) {
				r.f.Report(v.Pos, "role", "the role id is no secret; the secret id is, and is put with chatelaine vault source put "+s.Name, "%s.approle.role_id must be 1 to %d printable ASCII characters", key, maxRole)
			}
			s.Server.RoleID = text
		}
	}
	s.Server.AppRole = kv.DefaultAppRole
	if v := role.Get("mount"); v != nil {
		if text, ok := r.f.Text(v, key+".approle.mount"); ok {
			if err := kv.CheckPath(text); err != nil {
				r.f.Report(v.Pos, "path", "such as approle", "%s.approle.mount: %v", key, err)
			}
			s.Server.AppRole = text
		}
	}
}

// sourceCA reads a certificate authority's file beside chatelaine.yaml.
func (r *reader) sourceCA(key string, n *strictyaml.Node, s *sourceConfig) {
	if n == nil {
		return
	}
	text, ok := r.f.Text(n, key)
	if !ok {
		return
	}
	path := text
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(r.f.Name()), path)
	}
	pem, err := readBounded(path, maxCAFile)
	if err != nil {
		r.f.Report(n.Pos, "ca", "a file in PEM form; a relative path begins beside chatelaine.yaml", "%s cannot be read: %v", key, err)
		return
	}
	s.Server.CAPEM = pem
	sum := sha256.Sum256(pem)
	s.caDigest = "sha256:" + hex.EncodeToString(sum[:])
	if err := kv.CheckCA(pem); err != nil {
		r.f.Report(n.Pos, "ca", "a file in PEM form with BEGIN CERTIFICATE", "%s: %v", key, err)
	}
}

// readBounded reads a regular file that is not larger than most.
func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("it is no file")
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return b, err
}

// place says what a source is, for people; for a server it is what its credential
// is bound to.
func (s sourceConfig) place() string {
	switch s.Kind {
	case sourceExec:
		return strings.Join(s.Program.Argv, " ")
	case sourceCredentials:
		return "the unit's credentials"
	}
	parts := []string{s.Server.Address}
	if s.caDigest != "" {
		parts = append(parts, "ca "+s.caDigest)
	}
	if s.Server.Namespace != "" {
		parts = append(parts, "namespace "+s.Server.Namespace)
	}
	if s.Server.RoleID == "" {
		return strings.Join(append(parts, "token"), ", ")
	}
	return strings.Join(append(parts, "approle "+strconv.Quote(s.Server.RoleID)+" at "+s.Server.AppRole), ", ")
}

// row is one line of `chatelained config`: no value of a variable is in it.
func (s sourceConfig) row() [2]string {
	text := s.Kind + " " + s.place()
	if len(s.envNames) > 0 {
		text += "; env " + strings.Join(s.envNames, " ")
	}
	if s.Server.Mount != "" {
		text += "; mount " + s.Server.Mount
	}
	return [2]string{"vault.sources." + s.Name, text + "; timeout " + strictyaml.DurationText(s.Timeout) + "; keep " + strictyaml.DurationText(s.Keep)}
}

// sourcesOf makes the sources for an open vault. Nothing is run or asked.
func sourcesOf(c Config, v *vault.Vault) ([]vault.SourceSetup, error) {
	var out []vault.SourceSetup
	for _, s := range c.Sources {
		src, err := s.open(v)
		if err != nil {
			return nil, err
		}
		out = append(out, vault.SourceSetup{Source: src, Kind: s.Kind, Place: s.place(), Credential: s.Kind == sourceKV, Keep: s.Keep})
	}
	return out, nil
}

func (s sourceConfig) open(v *vault.Vault) (vault.Source, error) {
	switch s.Kind {
	case sourceExec:
		return execsource.New(s.Program)
	case sourceCredentials:
		return unitcreds.New(s.Name, os.Getenv(credentialsVariable))
	}
	o := s.Server
	o.Credential = v.CredentialOf(s.Name)
	return kv.New(o)
}
