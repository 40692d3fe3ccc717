package openapi_test

import (
	"os"
	"path/filepath"
	"testing"

	"chatelaine/internal/actions/scaffold/openapi"
)

// Whatever the description: an outline is refused with a reason, or it becomes a
// skeleton that loads.
func FuzzDescription(f *testing.F) {
	for _, file := range samples {
		b, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(one("/a/{b}", "{operationId: x, parameters: [{name: b, in: path, required: true, schema: {type: [string, 'null'], enum: [a, null]}}], responses: {'200': {content: {application/json: {schema: {type: array, items: {type: object, properties: {id: {const: 7}}}}}}}}}")))
	f.Add([]byte(one("/a", "{operationId: x, responses: {'200': {content: {application/json: {schema: {type: object, properties: {a: {type: number, minimum: 9, maximum: 1}, b: {type: string, pattern: '^(a|b)+$', example: \"\\u202e\"}}}}}}}}")))
	f.Add([]byte(`{"openapi": "3.0.0", "info": {"title": "🙂 \u0000"}, "paths": {"/a": {"delete": {"responses": {"204": {}}}}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := openapi.Parse(b)
		if err != nil {
			return
		}
		ops := d.Operations()
		for _, op := range ops[:min(len(ops), 1)] {
			id := op.ID
			if id == "" {
				id = op.Method + " " + op.Path
			}
			o, err := d.Outline(openapi.Options{Operation: id, Action: "draft_one"})
			if err != nil || len(o.Complete()) > 0 {
				continue
			}
			if _, err := o.Write(t.TempDir()); err != nil {
				t.Fatalf("%v\n%s%s", err, o.Files()["contract.yaml"], o.Site())
			}
		}
	})
}
