package client

import (
	"strings"
	"testing"
)

func TestFindPlaces(t *testing.T) {
	exists := func(paths ...string) func(string) bool {
		return func(p string) bool {
			for _, x := range paths {
				if x == p {
					return true
				}
			}
			return false
		}
	}
	cases := []struct {
		name string
		o    PlaceOptions
		env  map[string]string
		want Places
	}{
		{"root", PlaceOptions{UID: 0, Home: "/root"}, map[string]string{"XDG_CONFIG_HOME": "/x"},
			Places{"/etc/chatelaine", "/var/lib/chatelaine", "/run/chatelaine"}},
		{"person", PlaceOptions{UID: 7, Home: "/home/p"}, map[string]string{"XDG_RUNTIME_DIR": "/run/user/7"},
			Places{"/home/p/.config/chatelaine", "/home/p/.local/state/chatelaine", "/run/user/7/chatelaine"}},
		{"XDG folders", PlaceOptions{UID: 7, Home: "/home/p"}, map[string]string{"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/r"},
			Places{"/c/chatelaine", "/s/chatelaine", "/r/chatelaine"}},
		{"relative XDG is ignored", PlaceOptions{UID: 7, Home: "/home/p"}, map[string]string{"XDG_CONFIG_HOME": "c", "XDG_STATE_HOME": "s", "XDG_RUNTIME_DIR": "r"},
			Places{"/home/p/.config/chatelaine", "/home/p/.local/state/chatelaine", "/home/p/.local/state/chatelaine/run"}},
		{"no runtime folder of the system", PlaceOptions{UID: 7, Home: "/home/p", State: "/st"}, nil,
			Places{"/home/p/.config/chatelaine", "/st", "/st/run"}},
		{"environment", PlaceOptions{UID: 0}, map[string]string{EnvConfig: "/ec", EnvState: "/es", EnvRuntime: "/er"}, Places{"/ec", "/es", "/er"}},
		{"flag before environment", PlaceOptions{UID: 0, Config: "/fc", State: "/fs", Runtime: "/fr"}, map[string]string{EnvConfig: "/ec", EnvState: "/es", EnvRuntime: "/er"}, Places{"/fc", "/fs", "/fr"}},
		{"led to the machine's", PlaceOptions{UID: 7, Home: "/home/p", Machine: true, Exists: exists("/run/chatelaine", "/etc/chatelaine")}, map[string]string{"XDG_RUNTIME_DIR": "/r"},
			Places{"/etc/chatelaine", "/home/p/.local/state/chatelaine", "/run/chatelaine"}},
		{"own before the machine's", PlaceOptions{UID: 7, Home: "/home/p", Machine: true, Exists: exists("/run/chatelaine", "/r/chatelaine")}, map[string]string{"XDG_RUNTIME_DIR": "/r"},
			Places{"/home/p/.config/chatelaine", "/home/p/.local/state/chatelaine", "/r/chatelaine"}},
		{"a daemon is never led away", PlaceOptions{UID: 7, Home: "/home/p", Exists: exists("/run/chatelaine", "/etc/chatelaine")}, map[string]string{"XDG_RUNTIME_DIR": "/r"},
			Places{"/home/p/.config/chatelaine", "/home/p/.local/state/chatelaine", "/r/chatelaine"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.o.Home == "" {
				c.o.Home = "/root"
			}
			if c.o.Exists == nil {
				c.o.Exists = exists()
			}
			c.o.Getenv = func(k string) string { return c.env[k] }
			got, err := FindPlaces(c.o)
			if err != nil || got != c.want {
				t.Fatalf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestFindPlacesMakesAbsolute(t *testing.T) {
	p, err := FindPlaces(PlaceOptions{Config: "c", State: "s", Runtime: "r", Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []string{p.Config, p.State, p.Runtime, p.AgentSocket(), p.OperatorSocket(), p.SiteFile(), p.Contracts()} {
		if !strings.HasPrefix(x, "/") {
			t.Errorf("%q is not absolute", x)
		}
	}
}

func TestSocketPathTooLong(t *testing.T) {
	if err := checkSocketPath("/" + strings.Repeat("x", maxSocketPath-1)); err != nil {
		t.Errorf("the longest path is refused: %v", err)
	}
	if err := checkSocketPath("/" + strings.Repeat("x", maxSocketPath)); err == nil || !strings.Contains(err.Error(), "shorter --runtime") {
		t.Errorf("error %v", err)
	}
}
