package actions

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"chatelaine/internal/validate"
)

// userAgent names us where neither contract nor target does.
const userAgent = "chatelaine"

// maxBody bounds a request's body; inputs hold at most 64 KiB.
const maxBody = 1 << 20

// build makes the parts of one step's request and parses the finished URL again.
func (p *plan) build(step *stepSpec, e env) (built, error) {
	var b built
	filled, err := step.path.build(e)
	if err != nil {
		return b, err
	}
	b.path = p.route.target.basePath + filled
	if b.query, err = buildQuery(step.query, e); err != nil {
		return b, err
	}
	if err := p.reparse(b, strings.Count(filled, "/")); err != nil {
		return b, err
	}
	if b.header, err = p.headers(step, e); err != nil {
		return b, err
	}
	if err := p.body(step, e, &b); err != nil {
		return b, err
	}
	if step.bodyKind != bodyNone {
		b.mime = step.mime
	}
	return b, nil
}

// reparse reads the finished URL as a server would: same scheme, host, port,
// base path and number of segments, and no dot segment even after decoding.
func (p *plan) reparse(b built, segments int) error {
	t := p.route.target
	origin := t.scheme + "://" + t.authority()
	text := origin + b.path
	if b.query != "" {
		text += "?" + b.query
	}
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("the built URL does not parse")
	}
	decoded := strings.TrimSuffix(u.Path, "/")
	switch {
	case u.Scheme != t.scheme || u.Host != t.authority() || u.User != nil || u.Fragment != "":
		return errors.New("the built URL has another origin")
	case u.EscapedPath() != b.path || u.RawQuery != b.query:
		return errors.New("the built URL has another spelling")
	case !strings.HasPrefix(b.path, t.basePath+"/"):
		return errors.New("the built URL leaves the base path")
	case strings.Count(b.path, "/") != strings.Count(t.basePath, "/")+segments:
		return errors.New("the built URL has another number of segments")
	case decoded != "" && path.Clean(decoded) != decoded:
		return errors.New("the built URL has an empty or a dot segment")
	}
	return nil
}

func buildQuery(members []valueMember, e env) (string, error) {
	q := url.Values{}
	for _, m := range members {
		v, err := m.node.eval(e)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("query %s: %w", m.name, err)
		}
		items, list := v.([]any)
		if !list {
			items = []any{v}
		}
		for _, it := range items {
			s, err := plainText(it)
			if err != nil {
				return "", fmt.Errorf("query %s: %w", m.name, err)
			}
			q.Add(m.name, s)
		}
	}
	return strings.ReplaceAll(q.Encode(), "+", "%20"), nil
}

// plainText writes one value into a query or a form.
func plainText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case json.Number:
		return decimalText(v)
	case bool:
		return fmt.Sprint(v), nil
	}
	return "", errors.New("not one plain value")
}

// headers joins the operator's headers, the step's and, in the request, the
// idempotency key.
func (p *plan) headers(step *stepSpec, e env) (http.Header, error) {
	h := http.Header{}
	h.Set("User-Agent", userAgent)
	for name, value := range p.route.target.headers {
		h.Set(name, value)
	}
	for _, m := range step.headers {
		v, err := m.node.eval(e)
		if errors.Is(err, errAbsent) {
			continue
		}
		s, ok := v.(string)
		if err != nil || !ok {
			return nil, fmt.Errorf("header %s is no text", m.name)
		}
		h.Set(m.name, s)
	}
	if name := p.contract.idem.header; name != "" && step.kind == StepRequest {
		if e.call.IdempotencyKey == "" {
			return nil, errors.New("no idempotency key")
		}
		h.Set(name, e.call.IdempotencyKey)
	}
	for name, values := range h {
		if !httpguts.ValidHeaderFieldName(name) || refusedHeader(name) || !slices.ContainsFunc(values, validHeaderText) {
			return nil, fmt.Errorf("header %s cannot be sent", name)
		}
	}
	return h, nil
}

// body writes the step's body, with an empty place in it where the credential
// goes there.
func (p *plan) body(step *stepSpec, e env, b *built) error {
	hole := p.route.target.hole()
	if step.bodyKind == bodyNone {
		if hole != nil {
			return errors.New("the credential goes into a body, and the step has none")
		}
		return nil
	}
	v, err := step.body.eval(e)
	if errors.Is(err, errAbsent) {
		v, err = map[string]any{}, nil
	}
	if err != nil {
		return fmt.Errorf("body: %w", err)
	}
	if keys := p.contract.idem.json; keys != nil && step.kind == StepRequest {
		if e.call.IdempotencyKey == "" {
			return errors.New("no idempotency key")
		}
		if err := putMember(v, keys, e.call.IdempotencyKey); err != nil {
			return err
		}
	}
	if hole != nil {
		b.body, b.hole, err = hole.open(step.bodyKind, v)
		b.holed = err == nil
	} else {
		b.body, err = encodeBody(step.bodyKind, v)
	}
	if err == nil && len(b.body) > maxBody {
		return fmt.Errorf("the body has more than %d bytes", maxBody)
	}
	return err
}

func encodeBody(k bodyKind, v any) ([]byte, error) {
	switch k {
	case bodyJSON:
		return validate.Canonical(v), nil
	case bodyForm:
		form := url.Values{}
		if err := flatten(form, "", v); err != nil {
			return nil, err
		}
		return []byte(form.Encode()), nil
	}
	s, ok := v.(string)
	if !ok {
		return nil, errors.New("the body is no text")
	}
	return []byte(s), nil
}

// flatten writes nested values with their keys in brackets: a[b]=…, a[0]=….
func flatten(form url.Values, key string, v any) error {
	inner := func(name string) string {
		if key == "" {
			return name
		}
		return key + "[" + name + "]"
	}
	switch v := v.(type) {
	case map[string]any:
		for name, sub := range v {
			if overridingMember(name) {
				return errors.New("a form key that is refused")
			}
			if err := flatten(form, inner(name), sub); err != nil {
				return err
			}
		}
		return nil
	case []any:
		for i, sub := range v {
			if err := flatten(form, inner(itoa(i)), sub); err != nil {
				return err
			}
		}
		return nil
	}
	s, err := plainText(v)
	if err != nil {
		return err
	}
	form.Set(key, s)
	return nil
}

// putMember writes the idempotency key into the body that was just built.
func putMember(v any, keys []string, value string) error {
	m, err := parentOf(v, keys)
	if err != nil {
		return fmt.Errorf("the place of the idempotency key: %w", err)
	}
	m[keys[len(keys)-1]] = value
	return nil
}

// parentOf follows the members of a body that was just built to the object that
// holds the last one, and makes those that are missing on the way.
func parentOf(v any, keys []string) (map[string]any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("the body is no object")
	}
	for _, k := range keys[:len(keys)-1] {
		next, ok := m[k].(map[string]any)
		if !ok {
			if _, taken := m[k]; taken {
				return nil, errors.New("a member on the way is no object")
			}
			next = map[string]any{}
			m[k] = next
		}
		m = next
	}
	return m, nil
}
