package main

import (
	"fmt"
	"strings"
)

// Checks that lie in tables of the target rather than in its statements.
var (
	// banned are keywords that the allow-list leaves out on purpose.
	banned = []string{
		"$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$vocabulary", "definitions", "dependencies",
		"contentEncoding", "contentMediaType", "contentSchema", "default", "nullable", "readOnly", "writeOnly", "additionalItems",
	}
	bounds = []string{
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "format",
		"minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties",
	}
	formatNames = []string{"date-time", "date", "uuid", "uri", "ipv4", "email", "hostname"}
)

// switchFile is the part of the copy that the switches call.
func switchFile(all *[]mutant) string {
	var b strings.Builder
	b.WriteString(`package validate

import (
	"os"
	"strconv"
)

var checkOffNumber, _ = strconv.Atoi(os.Getenv("` + variable + `"))

func checkOff(n int) bool { return n == checkOffNumber }

func checkLimit(n, limit int) int {
	if checkOff(n) {
		return 10 * limit
	}
	return limit
}

func init() {
`)
	put := func(name, effect string) {
		n := len(*all) + 1
		*all = append(*all, mutant{switchNumber: n, name: name})
		fmt.Fprintf(&b, "\tif checkOff(%d) { %s }\n", n, effect)
	}
	for _, k := range banned {
		put("guard keywords: no "+k, fmt.Sprintf("keywords[%q] = shapeAny", k))
	}
	for _, k := range bounds {
		put("guard besideType: "+k, fmt.Sprintf("delete(besideType, %q)", k))
	}
	for _, f := range formatNames {
		put("formats: "+f, fmt.Sprintf("formats[%q] = func(string) bool { return true }", f))
	}
	b.WriteString("}\n")
	return b.String()
}
