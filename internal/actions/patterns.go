package actions

import (
	"regexp"
	"sync"
)

// patterns keeps the compiled patterns of input schemas: they come from
// contracts, so there are few and they are known to compile.
var patterns sync.Map

func patternMatches(pattern, s string) bool {
	if re, ok := patterns.Load(pattern); ok {
		return re.(*regexp.Regexp).MatchString(s)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return false
	}
	patterns.Store(pattern, re)
	return re.MatchString(s)
}
