package actions_test

import (
	"fmt"
	"slices"
	"testing"

	"chatelaine/internal/actions"
)

// An input that an answer repeats may not come where it may not stand by itself;
// what the service made itself may.
func TestInputsThatComeBack(t *testing.T) {
	const input = `input:
  type: object
  additionalProperties: false
  required: [id, name, kind]
  properties:
    id: {type: string, pattern: '^r[0-9]{1,8}$', maxLength: 9}
    name: {type: string, pattern: '^[a-z ]{1,20}$', maxLength: 20}
    kind: {type: string, enum: [small, large]}
`
	contract := func(query, capture, expect, path, headers, success string) string {
		return input + fmt.Sprintf(`lookups:
  project:
    method: GET
    path: /v1/projects
    query: %s
    outcomes:
      - status: 200
        expect: {type: object, additionalProperties: false, required: [name, key, type], properties: %s}
        capture: %s
request:
  method: GET
  path: %s
  headers: %s
  outcomes:
    - status: 200
      expect: {type: object, additionalProperties: false, required: [id, state], properties: {id: {type: string, maxLength: 20}, state: {type: string, maxLength: 20}}}
      success: %s
`, query, expect, capture, path, headers, success)
	}
	const (
		names   = "{name: {from: input.name}, kind: {from: input.kind}}"
		types   = "{name: {type: string, pattern: '^[a-z]{1,20}$', maxLength: 20}, key: {type: string, pattern: '^p[0-9]{1,8}$', maxLength: 9}, type: {type: string, enum: [small, large]}}"
		path    = "/v1/projects/{project.k}/releases/{input.id}"
		plain   = "/v1/releases/{input.id}"
		none    = "{}"
		success = "{id: /id, state: /state}"
	)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"the service's own key":        {contract(names, "{k: /key}", types, path, none, success), nil},
		"the name in the path":         {contract(names, "{k: /name}", types, path, none, success), []string{"input-laundered"}},
		"under the key it was sent as": {contract("{key: {from: input.name}}", "{k: /key}", types, path, none, success), []string{"input-laundered"}},
		"an enum in the path":          {contract("{type: {from: input.kind}}", "{k: /type}", types, path, none, success), nil},
		"as evidence":                  {contract(names, "{k: /name}", types, plain, none, "{id: /id, state: /state, owner: {from: project.k}}"), []string{"input-laundered"}},
	} {
		text := c.text
		if name == "as evidence" {
			text += "result: {type: object, additionalProperties: false, required: [id, state], properties: {id: {type: string, pattern: '^r[0-9]{1,8}$', maxLength: 9}, state: {type: string, enum: [running, done]}, owner: {type: string, pattern: '^[a-z]{1,20}$', maxLength: 20}}}\n"
		}
		if got := broken(t, "read", []actions.ExampleFile{{Name: "contract.yaml", Text: text}}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	bound := contract(names, "{k: /name}", types, plain, none, "{id: /id, state: /state, owner: {from: project.k}}") +
		"result: {type: object, additionalProperties: false, required: [id, state], properties: {id: {type: string, pattern: '^r[0-9]{1,8}$', maxLength: 9}, state: {type: string, enum: [running, done]}, owner: {type: string, pattern: '^[a-z]{1,20}$', maxLength: 20}}}\n" +
		"checks:\n  - same: [result.id, input.id]\n  - same: [result.owner, input.name]\n"
	if got := broken(t, "read", []actions.ExampleFile{{Name: "contract.yaml", Text: bound}}); len(got) > 0 {
		t.Errorf("bound by a check: %v", got)
	}
	header := contract("{kind: {from: input.kind}}", "{k: /type}", types, plain, "{Accept-Language: {from: project.k}}", success)
	if got := broken(t, "read", []actions.ExampleFile{{Name: "contract.yaml", Text: header}}); len(got) > 0 {
		t.Errorf("a word of the service in a header: %v", got)
	}
	header = contract("{type: {from: input.kind}}", "{k: /type}", types, plain, "{Accept-Language: {from: project.k}}", success)
	if got := broken(t, "read", []actions.ExampleFile{{Name: "contract.yaml", Text: header}}); !slices.Equal(got, []string{"input-laundered"}) {
		t.Errorf("an input repeated in a header: %v", got)
	}
}
