package main

import (
	"net"
	"strconv"
	"strings"

	"chatelaine/internal/actions"
	"chatelaine/internal/operatorapi"
	"chatelaine/internal/vault"
)

// siteBinding is what a put would bind the identity's secret to for that target:
// everything of the site file that says where it goes and how it is applied.
func siteBinding(id *actions.IdentitySpec, t *actions.Target) vault.Binding {
	b := vault.Binding{Kind: id.Kind(), Params: vault.ParamsOf(id.Params())}
	switch id.Kind() {
	case vault.KindHeader:
		b.Header, b.Prefix = id.HeaderName(), id.Prefix()
	case vault.KindBasic:
		b.Username = id.Username()
	}
	if p := id.Token(); p != nil {
		b.Token = &vault.Place{Scheme: p.Scheme(), Host: p.Host(), Port: p.Port(), Path: p.Path(), CADigest: p.CADigest(), Pins: p.Pins()}
	}
	if s, ok := t.SSH(); ok {
		b.Scheme, b.User, b.HostKeys = "ssh", s.User(), s.HostKeys()
		host, port, _ := net.SplitHostPort(s.Address()) // the loader has checked it
		b.Host = host
		b.Port, _ = strconv.Atoi(port)
		return b
	}
	b.Scheme, b.Host, b.Port, b.BasePath = t.Scheme(), t.Host(), t.Port(), t.BasePath()
	b.CADigest, b.Pins = t.CADigest(), t.Pins()
	return b
}

// part is one part of a binding, as a person reads it; "" is none.
type part struct{ Part, Value string }

// partsOf is a whole binding, part by part. Parts that a kind does not have are
// left out; trust is always there, since none of it means something.
func partsOf(b vault.Binding) []part {
	out := []part{{"kind", b.Kind}}
	some := func(all ...part) {
		for _, p := range all {
			if p.Value != "" {
				out = append(out, p)
			}
		}
	}
	some(part{"header", b.Header}, part{"prefix", strings.TrimRight(b.Prefix, " ")}, part{"user name", b.Username})
	out = append(out, part{"scheme", b.Scheme}, part{"host", b.Host}, part{"port", strconv.Itoa(b.Port)})
	if b.Scheme == "ssh" {
		out = append(out, part{"user", b.User}, part{"host keys", strings.Join(b.HostKeys, ", ")})
	} else {
		out = append(out, part{"base path", b.BasePath}, part{"CA", b.CADigest}, part{"pins", strings.Join(b.Pins, " ")})
	}
	if t := b.Token; t != nil {
		out = append(out, part{"token place", placeText(*t)},
			part{"token CA", t.CADigest}, part{"token pins", strings.Join(t.Pins, " ")})
	}
	for _, p := range b.Params {
		some(part{p.Name, p.Value})
	}
	return out
}

// differences are the parts of a binding that the targets of the identity have
// otherwise now. A target that only narrows has none.
func differences(set *actions.Set, id *actions.IdentitySpec, b vault.Binding) []operatorapi.Difference {
	var out []operatorapi.Difference
	for _, t := range targetsOf(set, id.Name()) {
		now := siteBinding(id, t)
		if b.FitsSite(now) == nil {
			continue
		}
		is := map[string]string{}
		for _, p := range partsOf(now) {
			is[p.Part] = p.Value
		}
		for _, p := range partsOf(b) {
			if v := is[p.Part]; v != p.Value {
				out = append(out, operatorapi.Difference{Target: t.Name(), Part: p.Part, Bound: p.Value, Now: v})
			}
			delete(is, p.Part)
		}
		for _, p := range partsOf(now) { // what the binding does not have at all
			if v, more := is[p.Part]; more && v != "" {
				out = append(out, operatorapi.Difference{Target: t.Name(), Part: p.Part, Now: v})
			}
		}
	}
	return out
}

// placeText is the place of an exchange as a person would write it.
func placeText(t vault.Place) string {
	return t.Scheme + "://" + net.JoinHostPort(t.Host, strconv.Itoa(t.Port)) + t.Path
}

func destination(b vault.Binding) string {
	user := ""
	if b.User != "" {
		user = b.User + "@"
	}
	return b.Scheme + "://" + user + net.JoinHostPort(b.Host, strconv.Itoa(b.Port)) + b.BasePath
}
