package demo

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// search looks for the tokens in everything that they must not be in. The
// daemon has ended, so the files are all there is.
func (p *play) search(context.Context) error {
	var tokens []string
	for _, t := range p.tokens {
		tokens = append(tokens, t)
	}
	n := needlesOf(tokens...)

	// A search that finds nothing proves nothing unless it can find.
	with, all := 0, p.service.Received()
	for _, r := range all {
		if n.in(r.Raw) > 0 {
			with++
		}
	}
	p.claim(claim{"what the service received", fmt.Sprintf("found in %d of %s, as it should be", with, count(len(all), "request")), with == len(all) && with > 0, "in every request: the search works"})

	received := p.tap.bytes()
	p.nowhere("what the agent received", count(len(received), "byte"), n.in(received), len(received) > 0)
	log, err := os.ReadFile(p.home.log())
	if err != nil {
		return err
	}
	p.nowhere("the log, at debug level", count(bytes.Count(log, []byte("\n")), "line"), n.in(log), len(log) > 0)
	record, err := searchFiles(n, filepath.Join(p.home.places.State, "audit"))
	if err != nil {
		return err
	}
	p.nowhere("the record", record.size(), record.hits, record.files > 0)
	state, err := searchFiles(n, p.home.places.State)
	if err != nil {
		return err
	}
	p.nowhere("the state folder", state.size(), state.hits, state.files > record.files)
	rest, err := searchFiles(n, p.home.dir)
	if err != nil {
		return err
	}
	printed := append(p.p.printed.Bytes(), p.shown.Bytes()...)
	p.nowhere("home, output, this screen", count(rest.files, "file")+" and "+count(len(printed), "byte")+" of output", rest.hits+n.in(printed), len(printed) > 0)
	return nil
}

// nowhere claims that nothing was found, and that there was something to search.
func (p *play) nowhere(name, size string, hits int, any bool) {
	p.claim(claim{name, fmt.Sprintf("%s: %d hits", size, hits), hits == 0 && any, "something to search, 0 hits"})
}

// found is the outcome of a search through files.
type found struct{ files, bytes, hits int }

func (f found) size() string { return count(f.files, "file") + ", " + count(f.bytes, "byte") }

// searchFiles searches the names and contents of all files below a folder.
func searchFiles(n needles, dir string) (found, error) {
	var f found
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		f.hits += n.in([]byte(path))
		if !d.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f.files++
		f.bytes += len(b)
		f.hits += n.in(b)
		return nil
	})
	if err != nil {
		return f, fmt.Errorf("the search: %w", err)
	}
	return f, nil
}
