package agentapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/gateway"
	"chatelaine/internal/loopback"
)

func bad(pointer, reason string) error {
	return fault.Invalid(doorError(strings.TrimSpace(pointer+" "+reason)), fault.Field{Pointer: pointer, Reason: reason})
}

// decodeCall reads {"input", "request_id"?, "wait"?}, closed and typed.
func (a *API) decodeCall(body []byte, ask *gateway.Ask) error {
	m, err := a.object(body)
	if err != nil {
		return err
	}
	if err := onlyMembers(m, "input", "request_id", "wait"); err != nil {
		return err
	}
	input, there := m["input"]
	if !there {
		return bad("/input", "is missing")
	}
	ask.Input = input
	if v, there := m["request_id"]; there {
		s, ok := v.(string)
		if !ok || s == "" {
			return bad("/request_id", "must be a text of 8 to 64 characters from A-Z a-z 0-9 _ . -")
		}
		ask.RequestID = s
	}
	if v, there := m["wait"]; there {
		n, ok := v.(json.Number)
		if !ok {
			return bad("/wait", "must be a whole number of seconds")
		}
		ask.Wait, err = seconds(n.String(), "/wait")
	}
	return err
}

// decodeSession reads {"name", "anchor"}.
func (a *API) decodeSession(w http.ResponseWriter, r *http.Request) (name, anchor string, err error) {
	body, err := loopback.ReadBody(w, r)
	if err != nil {
		return "", "", err
	}
	m, err := a.object(body)
	if err != nil {
		return "", "", err
	}
	if err := onlyMembers(m, "name", "anchor"); err != nil {
		return "", "", err
	}
	name, ok := m["name"].(string)
	if !ok {
		return "", "", bad("/name", "is missing or not a text")
	}
	anchor = "self"
	if v, there := m["anchor"]; there {
		anchor, ok = v.(string)
		if !ok || (anchor != "self" && anchor != "parent") {
			return "", "", bad("/anchor", `must be "self" or "parent"`)
		}
	}
	return name, anchor, nil
}

func (a *API) object(body []byte) (map[string]any, error) {
	v, err := a.g.ParseCaller(body)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, bad("", "the body must be a JSON object")
	}
	return m, nil
}

// onlyMembers refuses an unknown member. Its name is the caller's word and is
// not repeated.
func onlyMembers(m map[string]any, names ...string) error {
	known := 0
	list := ""
	for i, n := range names {
		if _, there := m[n]; there {
			known++
		}
		if i > 0 {
			list += ", "
		}
		list += n
	}
	if known != len(m) {
		return bad("", "has a member that is not one of "+list)
	}
	return nil
}

func waitQuery(r *http.Request) (time.Duration, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(q["wait"]) > 1 {
		return 0, bad("", "the query is not well-formed")
	}
	for k := range q {
		if k != "wait" {
			return 0, bad("", "the query has a member that is not wait")
		}
	}
	if len(q["wait"]) == 0 {
		return 0, nil
	}
	return seconds(q["wait"][0], "/wait")
}

func seconds(s, pointer string) (time.Duration, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > WaitMax || strconv.Itoa(n) != s { // one spelling: no sign, no zeros before
		return 0, bad(pointer, "must be a whole number of seconds from 0 to 50")
	}
	return time.Duration(n) * time.Second, nil
}
