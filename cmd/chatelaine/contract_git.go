package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// headRevision is what a path alone is compared with.
const headRevision = "HEAD"

// maxGitOutput bounds what one call of git may answer.
const maxGitOutput = 64 << 20

// gitTree reads one commit of a repository. It asks git for objects by their
// names and takes the bytes as they were committed: an archive would leave out
// or rewrite what the repository's own attributes say.
type gitTree struct {
	dir, rev, commit string
	blobs            map[string]gitBlob
}

// gitBlob is one file of a commit.
type gitBlob struct {
	id   string
	size int64
}

// gitEdition reads a revision. Without a path of its own it means at, a path on
// this machine inside the repository; what is not there is an edition without
// contracts.
func gitEdition(ctx context.Context, rev, inTree string, given bool, at string) (edition, error) {
	at, err := filepath.Abs(at)
	if err != nil {
		return edition{}, usage(err.Error())
	}
	dir := nearestFolder(at)
	if given {
		dir = "."
	}
	g := &gitTree{dir: dir, rev: rev}
	if err := g.open(ctx); err != nil {
		return edition{}, err
	}
	if !given || strings.HasPrefix(inTree, "./") || strings.HasPrefix(inTree, "../") {
		if !given {
			inTree, err = filepath.Rel(dir, at)
			if err != nil {
				return edition{}, usage(fmt.Sprintf("%s is not inside the repository", at))
			}
		}
		prefix, err := g.git(ctx, nil, "rev-parse", "--show-prefix")
		if err != nil {
			return edition{}, err
		}
		inTree = path.Join(strings.TrimSuffix(string(prefix), "\n"), filepath.ToSlash(inTree))
	}
	inTree = strings.TrimPrefix(path.Clean("/"+inTree), "/")
	if err := g.list(ctx, inTree); err != nil {
		return edition{}, err
	}
	return g.edition(ctx, inTree, given)
}

// nearestFolder is the folder of a path, or the nearest above it that is there.
func nearestFolder(at string) string {
	for !isFolder(at) {
		at = filepath.Dir(at)
	}
	return at
}

var commitID = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// open resolves the revision to a commit.
func (g *gitTree) open(ctx context.Context) error {
	if _, err := exec.LookPath("git"); err != nil {
		return usage("git is not installed, so no revision can be read", "name two folders instead")
	}
	if _, err := g.git(ctx, nil, "rev-parse", "--git-dir"); err != nil {
		return usage(fmt.Sprintf("%q is neither a file nor a folder, and there is no git repository here that could have a revision of that name", g.rev), "run it inside the repository, or name two folders")
	}
	out, err := g.git(ctx, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", g.rev+"^{commit}")
	g.commit = strings.TrimSuffix(string(out), "\n")
	if err != nil || !commitID.MatchString(g.commit) {
		return usage(fmt.Sprintf("%q is neither a file, a folder nor a git revision", g.rev), "see git log, and name a commit, a branch or a tag")
	}
	return nil
}

// git runs one command of git with a fixed shape: no shell, no pager, no prompt,
// nothing fetched, a bounded answer.
func (g *gitTree) git(ctx context.Context, in []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--no-pager", "--no-replace-objects", "--literal-pathspecs", "-C", g.dir}, args...)...)
	cmd.Env = append(gitEnvironment(), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0")
	cmd.Stdin = bytes.NewReader(in)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	out, readErr := io.ReadAll(io.LimitReader(pipe, maxGitOutput+1))
	if len(out) > maxGitOutput {
		cmd.Process.Kill()
	}
	err = cmd.Wait()
	switch {
	case len(out) > maxGitOutput:
		return nil, refused("git answers with more than can be compared", "name a smaller folder")
	case readErr != nil:
		return nil, readErr
	}
	return out, err
}

// gitEnvironment is ours without what a hook of git sets: it would bind every
// call to the hook's repository, in words that hold in the hook's folder only.
func gitEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"}, name)
	})
}

// list reads the names of the files under a path.
func (g *gitTree) list(ctx context.Context, under string) error {
	args := []string{"ls-tree", "-r", "-l", "-z", "--full-tree", g.commit, "--"}
	if under != "" {
		args = append(args, under)
	}
	out, err := g.git(ctx, nil, args...)
	if err != nil {
		return failed(err, "the files of "+g.rev+" cannot be listed")
	}
	g.blobs = map[string]gitBlob{}
	for _, entry := range strings.Split(string(out), "\x00") {
		head, name, ok := strings.Cut(entry, "\t")
		f := strings.Fields(head)
		// A link is not followed and a submodule is another repository.
		if !ok || len(f) != 4 || f[1] != "blob" || f[0] != "100644" && f[0] != "100755" {
			continue
		}
		size, err := strconv.ParseInt(f[3], 10, 64)
		if err == nil {
			g.blobs[name] = gitBlob{f[2], size}
		}
	}
	return nil
}

// failed keeps an error that says its own way out.
func failed(err error, msg string) error {
	var f *failure
	if errors.As(err, &f) {
		return err
	}
	return &failure{exit: exitRefused, msg: msg, cause: err}
}

// read gets the bytes of files, all in one call.
func (g *gitTree) read(ctx context.Context, names []string) (map[string][]byte, error) {
	var ask bytes.Buffer
	total := int64(0)
	for _, n := range names {
		if g.blobs[n].size > maxEditionFile {
			return nil, refused(fmt.Sprintf("%s:%s has more than %d bytes", g.rev, n, maxEditionFile))
		}
		total += g.blobs[n].size
		ask.WriteString(g.blobs[n].id + "\n")
	}
	if len(names) > maxEditionFiles || total > maxGitOutput/2 {
		return nil, refused(fmt.Sprintf("%s holds more contracts than can be compared", g.rev))
	}
	out := map[string][]byte{}
	if len(names) == 0 {
		return out, nil
	}
	answer, err := g.git(ctx, ask.Bytes(), "cat-file", "--batch")
	if err != nil {
		return nil, failed(err, "the files of "+g.rev+" cannot be read")
	}
	r := bufio.NewReader(bytes.NewReader(answer))
	for _, n := range names {
		head, err := r.ReadString('\n')
		if err != nil || head != fmt.Sprintf("%s blob %d\n", g.blobs[n].id, g.blobs[n].size) {
			return nil, refused(fmt.Sprintf("%s:%s is not in this repository", g.rev, n), "fetch the revision first")
		}
		text := make([]byte, g.blobs[n].size+1) // and the newline behind it
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, refused(fmt.Sprintf("%s:%s cannot be read", g.rev, n))
		}
		out[n] = text[:len(text)-1]
	}
	return out, nil
}

// edition makes an edition of what lies at a path of the commit.
func (g *gitTree) edition(ctx context.Context, at string, given bool) (edition, error) {
	e := edition{name: g.rev + ":" + at}
	folders := map[string]string{} // file → its folder's name
	if _, is := g.blobs[at]; is {
		folders[at], e.single = "", true
	} else if file := path.Join(at, contractFileName); g.blobs[file].id != "" {
		folders[file], e.single = path.Base(at), true
		if at == "" {
			folders[file] = ""
		}
	} else {
		for name := range g.blobs {
			dir := path.Dir(name)
			if path.Base(name) == contractFileName && path.Join(at, path.Base(dir)) == dir && !strings.HasPrefix(path.Base(dir), ".") {
				folders[name] = path.Base(dir)
			}
		}
	}
	var names []string
	for name := range folders {
		names = append(names, name)
	}
	slices.Sort(names)
	texts, err := g.read(ctx, names)
	if err != nil {
		return e, err
	}
	for _, name := range names {
		e.contracts = append(e.contracts, contractText{g.rev + ":" + name, folders[name], texts[name]})
	}
	if site := path.Join(at, siteFileName); !e.single && g.blobs[site].id != "" {
		e.siteFiles = func() (string, func(), error) { return g.siteFiles(ctx, site) }
	}
	if e.empty() && given {
		return e, usage(fmt.Sprintf("there is no contract at %s", e.name), "name a folder with contract.yaml, or one that holds such folders")
	}
	return e, nil
}

// siteFiles writes the site file and the files that it names beside it into a
// folder of their own.
func (g *gitTree) siteFiles(ctx context.Context, site string) (string, func(), error) {
	dir, err := os.MkdirTemp("", "chatelaine-diff-")
	if err != nil {
		return "", nil, err
	}
	done := func() { os.RemoveAll(dir) }
	texts, err := g.read(ctx, []string{site})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, siteFileName), texts[site], 0o600)
	}
	if err == nil {
		err = g.namedFiles(ctx, dir, site, texts[site])
	}
	if err != nil {
		done()
		return "", nil, err
	}
	return filepath.Join(dir, siteFileName), done, nil
}

// namedFiles writes the files that a site file names and the commit has.
func (g *gitTree) namedFiles(ctx context.Context, dir, site string, text []byte) error {
	root := strictyaml.Parse(siteFileName, text, strictyaml.Limits{Bytes: maxEditionFile, Nodes: siteNodes}).Root()
	var files []string
	for _, part := range [][]string{{"targets", "ca"}, {"keys", "jwks"}, {"identities", "token", "ca"}, {"identities", "sign", "ca"}} {
		for _, name := range root.Get(part[0]).Keys() {
			n := root.Get(part[0]).Get(name)
			for _, key := range part[1:] {
				n = n.Get(key)
			}
			if n != nil && filepath.IsLocal(n.Text) && g.blobs[path.Join(path.Dir(site), n.Text)].id != "" && !slices.Contains(files, path.Clean(n.Text)) {
				files = append(files, path.Clean(n.Text))
			}
		}
	}
	var names []string
	for _, f := range files {
		names = append(names, path.Join(path.Dir(site), f))
	}
	texts, err := g.read(ctx, names)
	if err != nil {
		return err
	}
	for i, f := range files {
		to := filepath.Join(dir, filepath.FromSlash(f))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, texts[names[i]], 0o600); err != nil {
			return err
		}
	}
	return nil
}

// siteNodes bounds the places of a site file: a list may have thousands of
// names.
const siteNodes = 200000
