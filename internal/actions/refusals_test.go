package actions

import (
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write what is told into testdata")

// slip is one case of a file of refusals.
type slip struct {
	name, old, new string
	want           []string
}

func readSlips(t testing.TB, path string) (head string, slips []slip) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(b), "\n## ")
	for _, block := range strings.Split(rest, "\n## ") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		s := slip{name: lines[0]}
		for _, l := range lines[1:] {
			switch {
			case strings.HasPrefix(l, "- "), strings.HasPrefix(l, "+ "):
				text, err := strconv.Unquote(l[2:])
				if err != nil {
					t.Fatalf("%s: %v", l, err)
				}
				if l[0] == '-' {
					s.old = text
				} else {
					s.new = text
				}
			case strings.HasPrefix(l, "= "):
				s.want = append(s.want, l[2:])
			}
		}
		slips = append(slips, s)
	}
	return head, slips
}

func writeSlips(t *testing.T, path, head string, slips []slip) {
	t.Helper()
	var b strings.Builder
	b.WriteString(head + "\n")
	for _, s := range slips {
		b.WriteString("## " + s.name + "\n- " + strconv.Quote(s.old) + "\n+ " + strconv.QuoteToASCII(s.new) + "\n")
		for _, w := range s.want {
			b.WriteString("= " + w + "\n")
		}
		b.WriteString("\n")
	}
	if err := os.WriteFile(path, []byte(strings.TrimRight(b.String(), "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func refusals(t *testing.T, path string, try func(s slip) Problems) {
	head, slips := readSlips(t, path)
	for i, s := range slips {
		ps := try(s)
		got := told(ps)
		for _, p := range ps {
			if p.Hint == "" || p.Line == 0 {
				t.Errorf("%s: no way out or no place: %v", s.name, p)
			}
		}
		if *update {
			slips[i].want = got
			continue
		}
		if len(s.want) == 0 {
			t.Errorf("%s: the case says nothing", s.name)
		}
		same(t, s.name, got, s.want)
	}
	if *update {
		writeSlips(t, path, head, slips)
	}
}

func TestContractRefusals(t *testing.T) {
	refusals(t, "testdata/contract_refusals.txt", func(s slip) Problems {
		_, ps := load(t, goodSite, edit(t, goodContract, s.old, s.new))
		return ps
	})
}

func TestSiteRefusals(t *testing.T) {
	refusals(t, "testdata/site_refusals.txt", func(s slip) Problems {
		_, ps := load(t, edit(t, goodSite, s.old, s.new), goodContract)
		return ps
	})
}

// A set is whole or nothing, and all files are told about at once.
func TestWholeOrNothing(t *testing.T) {
	site, dir := write(t, edit(t, goodSite, "ask: session", "ask: sometimes"), edit(t, goodContract, "owner: release team", "ownr: x"))
	set, ps := LoadSet(site, dir)
	if set != nil {
		t.Error("a broken set was given")
	}
	files := map[string]int{}
	for _, p := range ps {
		files[p.File[strings.LastIndex(p.File, "/")+1:]]++
	}
	if files["contract.yaml"] != 2 || files["targets.yaml"] != 1 {
		t.Errorf("%v", ps)
	}
}

func TestMissingFiles(t *testing.T) {
	site, dir := write(t, goodSite, goodContract)
	if err := os.Mkdir(dir+"/empty_folder", 0o755); err != nil {
		t.Fatal(err)
	}
	_, ps := LoadSet(site, dir)
	if len(ps) != 1 || !strings.HasSuffix(ps[0].Error(), "empty_folder/contract.yaml: cannot be read: no such file or directory") {
		t.Error(ps)
	}
	if _, ps = LoadSet(site+"x", dir+"x"); len(ps) != 2 {
		t.Error(ps)
	}
	if err := os.Remove(dir + "/empty_folder"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir+"/.git", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, ps = LoadSet(site, dir); len(ps) != 0 {
		t.Errorf("a hidden folder counts: %v", ps)
	}
}

// What is no plain file is refused at once, never waited for.
func TestPipeInPlaceOfAFile(t *testing.T) {
	site, dir := write(t, goodSite, goodContract)
	path := dir + "/start_release/contract.yaml"
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	_, ps := LoadSet(site, dir)
	if len(ps) != 1 || !strings.HasSuffix(ps[0].Error(), "contract.yaml: cannot be read: not a plain file") {
		t.Error(ps)
	}
}
