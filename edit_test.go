package main

import (
	"slices"
	"strings"
	"testing"
)

// TTY-11: where lines cannot be edited, they come plain.
func TestTTY11CanEdit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		goos, env string
		want      bool
	}{
		{"linux", "TERM=xterm-256color LANG=de_DE.UTF-8", true},
		{"linux", "TERM=linux", true},
		{"linux", "TERM=xterm LANG=C.utf8", true},
		{"linux", "TERM=dumb LANG=C.UTF-8", false},
		{"linux", "LANG=C.UTF-8", false},
		{"linux", "TERM=xterm LANG=C", false},
		{"linux", "TERM=xterm LANG=de_DE.UTF-8 LC_ALL=POSIX", false},
		{"linux", "TERM=xterm LANG=C LC_CTYPE=en_US.UTF-8", true},
		{"linux", "TERM=xterm LANG=de_DE.ISO-8859-1", false},
		{"darwin", "TERM=xterm-256color", true},
		{"windows", "", true},
		{"windows", "TERM=dumb", false},
		{"windows", "LANG=C", true},
	} {
		if got := canEdit(tc.goos, envOf(tc.env)); got != tc.want {
			t.Errorf("canEdit(%s, %s) = %v, want %v", tc.goos, tc.env, got, tc.want)
		}
	}
	for env, want := range map[string]bool{"TERM=linux": false, "TERM=rxvt-unicode": false, "TERM=xterm": false, "TERM=vt220": false, "TERM=vte-256color": true, "TERM=xterm-256color": true,
		"TERM=tmux-256color": true, "TERM=xterm-256color XTERM_VERSION=XTerm(390)": false, "TERM=screen-256color": true} {
		if got := reflowsLines(envOf(env)); got != want {
			t.Errorf("reflowsLines(%s) = %v, want %v", env, got, want)
		}
	}
}

func envOf(list string) func(string) string {
	return func(name string) string {
		for _, kv := range strings.Fields(list) {
			if k, v, _ := strings.Cut(kv, "="); k == name {
				return v
			}
		}
		return ""
	}
}

func TestEditorArgv(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		goos string
		env  map[string]string
		want []string
	}{
		{"linux", nil, []string{"vi"}},
		{"windows", nil, []string{"notepad"}},
		{"linux", map[string]string{"EDITOR": "nano"}, []string{"nano"}},
		{"linux", map[string]string{"EDITOR": "nano", "VISUAL": "code --wait 'a b'"}, []string{"code", "--wait", "a b"}},
		{"linux", map[string]string{"EDITOR": "'open"}, nil},
		{"linux", map[string]string{"EDITOR": "  "}, nil},
	} {
		got, err := editorArgv(tc.goos, func(name string) string { return tc.env[name] })
		if !slices.Equal(got, tc.want) || (err != nil) != (tc.want == nil) {
			t.Errorf("editorArgv(%s, %v) = %q, %v, want %q", tc.goos, tc.env, got, err, tc.want)
		}
	}
}

// F26: several lines at once are a paste, also without marks; one line with its end is typed, as before.
func TestF26SeveralLines(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in   string
		want bool
	}{
		{"a", false}, {"a\r", false}, {"a\n", false}, {"\r", false}, {"\r\x1b[A", false}, {"a\r\r", false}, {"a\rb", true}, {"a\nb\n", true}, {"a\r\nb", true},
		{"first line\rsecond line\r/exit\r", true}, {"\x1b[200~a\rb\x1b[201~", false}, {"a\x1b\rb", false},
	} {
		var d keyDecoder
		if got := severalLines(d.feed([]byte(tc.in))); got != tc.want {
			t.Errorf("severalLines(%q) = %v, want %v", tc.in, got, tc.want)
		}
	}
}
