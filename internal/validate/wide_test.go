package validate

import (
	"fmt"
	"strings"
	"testing"
)

func TestAnObjectUnderPatternsIsBounded(t *testing.T) {
	members := func(n int) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(`"k%d":1`, i)
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	patterned := `{"type":"object","patternProperties":{"^k[0-9]{1,9}$":{"type":"integer"}}}`
	for _, c := range []struct{ schema, in, rule string }{
		{patterned, members(patternMembers), ""},
		{patterned, members(patternMembers + 1), ruleWide},
		{`{"type":"array","items":` + patterned + `}`, "[{}," + members(patternMembers+1) + "]", ruleWide},
		{`{"anyOf":[` + patterned + `,{"type":"array"}]}`, `[{"a":` + members(patternMembers+1) + "}]", ruleWide},
		{`{"type":"object","additionalProperties":{"type":"integer"}}`, members(patternMembers + 1), ""},
	} {
		s := mustSchema(t, c.schema)
		for _, got := range []*Violation{s.Validate(mustParse(t, c.in)), s.validateParsed(mustParse(t, c.in))} {
			if (got == nil) != (c.rule == "") || got != nil && (got.Rule != c.rule || got.EnginesDiffer || got.Reason == "") {
				t.Errorf("%s, %d bytes: %+v, want %q", c.schema, len(c.in), got, c.rule)
			}
		}
	}
}
