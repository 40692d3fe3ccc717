package gateway

import (
	"net/http"

	"chatelaine/internal/actions"
	"chatelaine/internal/validate"
)

// OpenAPI is the same actions as an OpenAPI 3.1 document.
func (g *Gateway) OpenAPI(token string, p Peer) ([]byte, error) {
	set, err := g.setFor(token, p)
	if err != nil {
		return nil, err
	}
	var free []*actions.Contract
	for _, c := range set.Contracts() {
		if !g.isHeld(c.Action()) {
			free = append(free, c)
		}
	}
	return encode(openAPIOf(free))
}

// openAPIOf describes contracts. Schemas stand under components, their own
// references moved along: a reference in an OpenAPI document is read from the
// document's root.
func openAPIOf(contracts []*actions.Contract) map[string]any {
	paths, schemas := map[string]any{}, map[string]any{}
	for _, c := range contracts {
		component := func(part string, s *validate.Schema) map[string]any {
			name := c.Action() + "." + part
			place := "#/components/schemas/" + name
			schemas[name] = actions.Rebase(s.Doc(), place)
			return map[string]any{"$ref": place}
		}
		paths["/v1/actions/"+c.Action()] = map[string]any{
			"post": operationOf(c, component("input", c.InputSchema()), component("envelope", c.EnvelopeSchema())),
		}
	}
	return map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": "chatelaine", "version": "v1", "summary": "Named actions; the daemon holds the credentials."},
		"paths":   paths,
		"components": map[string]any{
			"schemas":         schemas,
			"securitySchemes": map[string]any{"session": map[string]any{"type": "http", "scheme": "bearer"}},
		},
		"security": []any{map[string]any{"session": []any{}}},
	}
}

func operationOf(c *actions.Contract, input, envelope map[string]any) map[string]any {
	body := map[string]any{
		"type": "object", "required": []string{"input"}, "additionalProperties": false,
		"properties": map[string]any{
			"input":      input,
			"request_id": map[string]any{"type": "string", "pattern": `^[A-Za-z0-9][A-Za-z0-9_.-]{7,63}$`},
			"wait":       map[string]any{"type": "integer", "minimum": 0, "maximum": 50},
		},
	}
	content := func(schema any) map[string]any {
		return map[string]any{"application/json": map[string]any{"schema": schema}}
	}
	return map[string]any{
		"operationId": c.Action(), "summary": c.Summary(),
		"requestBody": map[string]any{"required": true, "content": content(body)},
		"responses": map[string]any{
			"default": map[string]any{"description": "the envelope", "content": content(envelope)},
			"200":     map[string]any{"description": http.StatusText(http.StatusOK), "content": content(envelope)},
		},
	}
}
