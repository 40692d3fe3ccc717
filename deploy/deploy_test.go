// Package deploy_test reads the units of this folder as a service manager
// would. The folder has no code; nothing imports it.
package deploy_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const unitFile = "systemd/chatelained.service"

// unitLines reads the unit's KEY=VALUE lines without comments and sections.
func unitLines(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "[") {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestUnitSaysWhatOperationsPromises(t *testing.T) {
	lines := unitLines(t)
	for _, want := range []string{
		"ExecStart=/usr/bin/chatelained serve",
		"User=chatelaine",
		"StateDirectory=chatelaine",
		"StateDirectoryMode=0700",
		"RuntimeDirectory=chatelaine",
		"ConfigurationDirectory=chatelaine",
		"Restart=on-failure",
		"RestartPreventExitStatus=2 75",
		"StartLimitBurst=5",
		"NoNewPrivileges=yes",
		"LimitCORE=0",
		"MemorySwapMax=0",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("%s has no line %q", unitFile, want)
		}
	}
}

// systemd's own reader is asked where it is installed. It wants the program to
// exist, so it reads a copy whose program does.
func TestUnitIsReadBySystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not on this machine; the unit was read by the other tests only")
		return
	}
	b, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	unit := strings.Replace(string(b), "ExecStart=/usr/bin/chatelained", "ExecStart=/bin/true", 1)
	copied := filepath.Join(t.TempDir(), filepath.Base(unitFile))
	if err := os.WriteFile(copied, []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	// In some containers it reads nothing at all, not even this.
	plain := filepath.Join(t.TempDir(), "plain.service")
	if err := os.WriteFile(plain, []byte("[Service]\nExecStart=/bin/true\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", plain).CombinedOutput(); err != nil {
		t.Logf("systemd-analyze does not work on this machine; the unit was read by the other tests only: %v\n%s", err, out)
		return
	}
	out, err := exec.Command(analyze, "verify", "--man=no", copied).CombinedOutput()
	if err != nil {
		t.Fatalf("systemd-analyze verify: %v\n%s", err, out)
	}
	// It also warns, with exit status 0, about words that it does not know.
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, copied) {
			t.Errorf("systemd-analyze verify: %s", line)
		}
	}
}

// plistDict reads the outermost dict of a property list: keys to the raw value.
func plistDict(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dec := xml.NewDecoder(f)
	dec.Strict = true
	out := map[string]string{}
	var depth int
	var element, key, value string
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			if depth++; depth == 3 {
				element, value = tok.Name.Local, ""
			} else if depth > 3 {
				value += "<" + tok.Name.Local + ">"
			}
		case xml.CharData:
			if depth >= 3 {
				value += strings.TrimSpace(string(tok))
			}
		case xml.EndElement:
			if depth--; depth != 2 {
				continue
			}
			if element == "key" {
				if key != "" {
					t.Fatalf("%s: the key %q has no value", file, key)
				}
				key = value
				continue
			}
			if _, twice := out[key]; twice || key == "" {
				t.Fatalf("%s: the key %q is missing or stands twice", file, key)
			}
			out[key], key = element+":"+value, ""
		}
	}
}

func TestPropertyListIsReadable(t *testing.T) {
	files, err := filepath.Glob("launchd/*.plist")
	if err != nil || len(files) == 0 {
		t.Fatalf("no property list: %v", err)
	}
	for _, file := range files {
		dict := plistDict(t, file)
		label := strings.TrimSuffix(filepath.Base(file), ".plist")
		for key, want := range map[string]string{
			"Label":            "string:" + label,
			"ProgramArguments": "array:<string>/usr/local/bin/chatelained<string>serve",
			"RunAtLoad":        "true:",
			"ThrottleInterval": "integer:30",
			"KeepAlive":        "dict:<key>Crashed<true>",
			"UserName":         "string:_chatelaine",
		} {
			if dict[key] != want {
				t.Errorf("%s: %s is %q, want %q", file, key, dict[key], want)
			}
		}
		for key := range dict {
			if !slices.Contains(launchdKeys, key) {
				t.Errorf("%s: launchd has no key %q", file, key)
			}
		}
	}
}

// launchdKeys are the words of launchd.plist(5) that our property lists use. No
// tool outside macOS knows them, so a slip of the pen would pass unseen.
var launchdKeys = []string{
	"Label", "ProgramArguments", "UserName", "GroupName", "EnvironmentVariables",
	"RunAtLoad", "KeepAlive", "ThrottleInterval", "ExitTimeOut", "Umask",
	"HardResourceLimits", "StandardErrorPath",
}
