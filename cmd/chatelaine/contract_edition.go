package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// The names of files in a folder of contracts.
const (
	contractFileName = "contract.yaml"
	siteFileName     = "targets.yaml"
)

// The bounds of one edition. The loader refuses larger files and more
// contracts, each with its own sentence.
const (
	maxEditionFile  = 2 << 20 // bytes; the loader's own bound of the largest kind, a site file
	maxEditionFiles = 1001    // contracts, and one more that the loader may refuse
)

// edition is one side of a comparison: the texts, and how to get at the site
// file.
type edition struct {
	name      string
	single    bool // one contract, not a folder of them
	contracts []contractText
	// siteFiles gives the path of the site file with the files it names beside
	// it, and what takes them away again; nil where there is none.
	siteFiles func() (path string, done func(), err error)
}

// contractText is one contract file. folder is "" where a file was named by
// itself.
type contractText struct {
	name, folder string
	text         []byte
}

func (e edition) empty() bool { return len(e.contracts) == 0 && e.siteFiles == nil }

// findEditions reads what the arguments name.
func findEditions(ctx context.Context, args []string, contracts string) (old, new edition, err error) {
	oldArg, newArg := args[0], headRevision
	if len(args) == 2 {
		newArg = args[1]
	} else if onDisk(args[0]) {
		oldArg, newArg = headRevision, args[0]
	}
	for _, arg := range args {
		if err := noSiteFile(arg); err != nil {
			return old, new, err
		}
	}
	if onDisk(oldArg) && onDisk(newArg) {
		if old, err = diskEdition(oldArg); err == nil {
			new, err = diskEdition(newArg)
		}
		return old, new, err
	}
	// A revision without a path means the path of the other side.
	fallback := contracts
	if onDisk(oldArg) {
		fallback = oldArg
	} else if onDisk(newArg) {
		fallback = newArg
	}
	if old, err = anyEdition(ctx, oldArg, newArg, fallback); err == nil {
		new, err = anyEdition(ctx, newArg, oldArg, fallback)
	}
	return old, new, err
}

// noSiteFile refuses a site file that is named by itself: it is compared with the
// contracts that it goes with.
func noSiteFile(arg string) error {
	rev, file := "", arg
	if before, after, ok := strings.Cut(arg, ":"); ok && !onDisk(arg) {
		rev, file = before+":", after
	}
	if isFolder(arg) || filepath.Base(file) != siteFileName && !holdsTargets(arg) {
		return nil
	}
	return usage(arg+" is a site file", "name its folder, "+rev+filepath.ToSlash(filepath.Dir(file)))
}

// holdsTargets says whether a file on disk is a site file under another name.
func holdsTargets(path string) bool {
	if !isFile(path) {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxEditionFile))
	if err != nil {
		return false
	}
	root := strictyaml.Parse(path, text, strictyaml.Limits{Bytes: maxEditionFile}).Root()
	return root.Get("targets") != nil && root.Get("contract") == nil
}

func onDisk(arg string) bool {
	_, err := os.Stat(arg)
	return err == nil
}

// anyEdition reads a path, or a revision; other is the other side, whose path
// after a colon counts too.
func anyEdition(ctx context.Context, arg, other, fallback string) (edition, error) {
	if onDisk(arg) {
		return diskEdition(arg)
	}
	rev, path, has := strings.Cut(arg, ":")
	if rev == "" || strings.HasPrefix(rev, "-") {
		return edition{}, usage(fmt.Sprintf("%q is neither a file, a folder nor a git revision", arg))
	}
	at := fallback
	if !has {
		if _, p, ok := strings.Cut(other, ":"); ok && !onDisk(other) {
			path, has = p, true
		}
	}
	return gitEdition(ctx, rev, path, has, at)
}

// diskEdition reads a file or a folder.
func diskEdition(path string) (edition, error) {
	e := edition{name: path}
	if !isFolder(path) {
		return e, e.addFile(path, "")
	}
	if isFile(filepath.Join(path, contractFileName)) {
		return e, e.addFile(filepath.Join(path, contractFileName), folderName(path))
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return e, refused(fmt.Sprintf("%s cannot be read", path))
	}
	for _, entry := range entries {
		file := filepath.Join(path, entry.Name(), contractFileName)
		if strings.HasPrefix(entry.Name(), ".") || !isFile(file) {
			continue
		}
		if err := e.addFile(file, entry.Name()); err != nil {
			return e, err
		}
	}
	e.single = false
	if site := filepath.Join(path, siteFileName); isFile(site) {
		e.siteFiles = func() (string, func(), error) { return site, func() {}, nil }
	}
	if e.empty() {
		return e, usage(fmt.Sprintf("there is no contract in %s", path), "name a folder with contract.yaml, or one that holds such folders")
	}
	return e, nil
}

// folderName is what a folder is called, however it was named.
func folderName(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return filepath.Base(path)
}

// addFile reads one contract file; the edition is then one contract, unless its
// reader says otherwise.
func (e *edition) addFile(path, folder string) error {
	if len(e.contracts) == maxEditionFiles {
		return refused(fmt.Sprintf("%s has too many contracts", e.name))
	}
	if !isFile(path) {
		return usage(fmt.Sprintf("%s is no plain file", path))
	}
	f, err := os.Open(path)
	if err != nil {
		return refused(fmt.Sprintf("%s cannot be read", path))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxEditionFile))
	if err != nil {
		return refused(fmt.Sprintf("%s cannot be read", path))
	}
	e.contracts, e.single = append(e.contracts, contractText{path, folder, text}), true
	return nil
}
