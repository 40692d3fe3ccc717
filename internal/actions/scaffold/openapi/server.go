package openapi

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/scaffold"
)

var (
	hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+(:[1-9][0-9]{0,4})?$`)
	basePath = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)*$`)
)

// server suggests a target's address. It is printed for the operator and never
// stands in the contract.
func (r *reader) server() {
	host := "https://" + strings.Trim(notInTarget.ReplaceAllString(r.o.Service, "-"), "-") + ".example"
	r.o.URL = host
	for _, from := range []object{r.p.op, r.p.item, r.d.root} {
		list, _ := from["servers"].([]any)
		if len(list) == 0 {
			continue
		}
		first, _ := list[0].(object)
		if u, ok := r.serverURL(first, host); ok {
			r.o.URL = u
		}
		if len(list) > 1 {
			r.o.Decide("target: the description names %d servers; the first one is suggested", len(list))
		}
		return
	}
	r.o.Decide("target: the description names no server; %s stands for it in the suggested target", host)
}

func (r *reader) serverURL(m object, host string) (string, bool) {
	text, _ := m["url"].(string)
	vars, _ := m["variables"].(object)
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		v, _ := vars[name].(object)
		value, _ := v["default"].(string)
		text = strings.ReplaceAll(text, "{"+name+"}", value)
		r.o.Decide("target: the server has the variable %s; its default is suggested", clean(name))
	}
	u, err := url.Parse(text)
	path := ""
	if err == nil {
		path = strings.TrimRight(u.EscapedPath(), "/")
	}
	switch {
	case err != nil || !basePath.MatchString(path) || strings.Contains(path+"/", "/./") || strings.Contains(path+"/", "/../"):
		r.o.Decide("target: the server of the description is no address that a target can have; %s stands for it", host)
		return "", false
	case u.Host == "":
		r.o.Decide("target: the description gives only the server's path; %s stands for its host", host)
		return host + path, true
	case u.Scheme != "https" || u.User != nil || u.RawQuery != "" || !realHost(u.Host):
		r.o.Decide("target: the server of the description is no https address that a target can have; %s stands for its host", host)
		return host + path, true
	}
	return "https://" + u.Host + path, true
}

// realHost leaves out what the site file's reader would refuse: addresses, ports
// that are none, names that only look like addresses.
func realHost(host string) bool {
	name, port, _ := strings.Cut(host, ":")
	last := name[strings.LastIndex(name, ".")+1:]
	return hostName.MatchString(host) && len(name) <= 253 && len(port) <= 4 && last != "localhost" && strings.Trim(last, "0123456789abcdefx") != ""
}

// identity suggests a kind for the first way in that the description names.
func (r *reader) identity() {
	r.o.Identity = scaffold.Identity{Kind: "none"}
	list, has := r.p.op["security"].([]any)
	if !has {
		list, _ = r.d.root["security"].([]any)
	}
	if len(list) == 0 {
		r.o.Decide("identity: the description asks for none; kind: none sends nothing that says who we are")
		return
	}
	first, _ := list[0].(object)
	names := slices.Sorted(maps.Keys(first))
	if len(names) == 0 {
		return
	}
	if len(list) > 1 || len(names) > 1 {
		r.o.Decide("identity: the description names several ways in; %s is suggested", clean(names[0]))
	}
	components, _ := r.d.root["components"].(object)
	schemes, _ := components["securitySchemes"].(object)
	m, err := r.d.resolve(schemes[names[0]])
	if err != nil {
		r.o.Decide("identity: the description does not describe %s; a bearer token is suggested", clean(names[0]))
		r.o.Identity.Kind = "bearer"
		return
	}
	scopes, _ := first[names[0]].([]any)
	r.scheme(m, scopes)
}

func (r *reader) scheme(m object, scopes []any) {
	kind, _ := m["type"].(string)
	name, _ := m["name"].(string)
	scheme, _ := m["scheme"].(string)
	r.o.Identity.Kind = "bearer"
	switch {
	case kind == "http" && strings.EqualFold(scheme, "basic"):
		r.o.Identity = scaffold.Identity{Kind: "basic", Username: "chatelaine"}
		r.o.Decide("identity: write the user name that the service knows us by")
	case kind == "http" && strings.EqualFold(scheme, "bearer"):
	case kind == "apiKey" && m["in"] == "header" && headerOf(name) == "Authorization",
		kind == "apiKey" && m["in"] == "header" && headerName.MatchString(name) && !actions.RefusedHeader(name):
		r.o.Identity = scaffold.Identity{Kind: "header", Header: headerOf(name)}
	case kind == "apiKey":
		r.o.Decide("identity: the service takes its key in the %v, which no identity does; ask for a header", m["in"])
	case kind == "mutualTLS":
		r.o.Identity = scaffold.Identity{Kind: "client_certificate"}
	case kind == "oauth2" && r.clientCredentials(m, scopes):
		r.o.Decide("identity: write the client id that the service gave us, and the fewest scopes that this action needs")
	case kind == "oauth2" || kind == "openIdConnect":
		r.o.Decide("identity: the service wants %s; a bearer token that lives long enough is suggested", kind)
	default:
		r.o.Decide("identity: the service wants %q, which this release has not; a bearer token is suggested", clean(kind))
	}
}

// clientCredentials suggests the flow in which a client gets a token for itself,
// where the description has it with an address.
func (r *reader) clientCredentials(m object, scopes []any) bool {
	flows, _ := m["flows"].(object)
	flow, _ := flows["clientCredentials"].(object)
	address, _ := flow["tokenUrl"].(string)
	if actions.TokenURLMistake(address) != "" {
		return false
	}
	id := scaffold.Identity{Kind: "oauth2_client", TokenURL: address}
	for _, s := range scopes[:min(len(scopes), maxScopes)] {
		if text, ok := s.(string); ok && actions.IsScope(text) && !slices.Contains(id.Scopes, text) {
			id.Scopes = append(id.Scopes, text)
		}
	}
	r.o.Identity = id
	return true
}

// maxScopes is how many an identity may ask for, with room for a person's own.
const maxScopes = 15

var headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

func headerOf(name string) string { return http.CanonicalHeaderKey(name) }
