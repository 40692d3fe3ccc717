package validate

import (
	"crypto/sha256"
	"regexp"
	"sync"

	first "github.com/santhosh-tekuri/jsonschema/v6"
)

// schemasKept bounds how many compiled schemas are kept. One contract has about
// ten, each asked for two or three times while it is loaded: by the lint, by
// the contract and by the reader of its answers.
const schemasKept = 512

// kept holds schemas that passed the guard and that both engines compiled, by
// the digest of their canonical form: equal documents check equally. A compiled
// schema never changes, so it may be shared.
var kept = struct {
	sync.Mutex
	byDigest map[[sha256.Size]byte]*Schema
}{byDigest: map[[sha256.Size]byte]*Schema{}}

// schemaKey is the digest of a document's canonical form, false for one that the
// parser does not make.
func schemaKey(doc any) (key [sha256.Size]byte, ok bool) {
	if !isParsed(doc, 0) {
		return key, false
	}
	return sha256.Sum256(Canonical(doc)), true
}

// keptSchema returns a schema that was compiled from an equal document, nil
// where there is none. Its name and its spelling of numbers may be others.
func keptSchema(key [sha256.Size]byte) *Schema {
	kept.Lock()
	defer kept.Unlock()
	return kept.byDigest[key]
}

// keepSchema keeps a compiled schema. Where there are too many all are dropped:
// who compiles that many different ones will not ask for the old ones again.
func keepSchema(key [sha256.Size]byte, s *Schema) {
	kept.Lock()
	defer kept.Unlock()
	if len(kept.byDigest) >= schemasKept {
		clear(kept.byDigest)
	}
	kept.byDigest[key] = s
}

// patternsKept bounds the compiled patterns that are kept; contracts of one
// service mostly share a few.
const patternsKept = 1024

// patterns holds patterns that LintPattern has nothing against.
var patterns = struct {
	sync.Mutex
	byText map[string]*regexp.Regexp
}{byText: map[string]*regexp.Regexp{}}

func keptPattern(p string) (*regexp.Regexp, bool) {
	patterns.Lock()
	defer patterns.Unlock()
	re, ok := patterns.byText[p]
	return re, ok
}

func keepPattern(p string, re *regexp.Regexp) {
	patterns.Lock()
	defer patterns.Unlock()
	if len(patterns.byText) >= patternsKept {
		clear(patterns.byText)
	}
	patterns.byText[p] = re
}

// compileKept gives the first engine its patterns; the guard has compiled them.
func compileKept(p string) (first.Regexp, error) {
	if re, ok := keptPattern(p); ok {
		return re, nil
	}
	return regexp.Compile(p)
}
