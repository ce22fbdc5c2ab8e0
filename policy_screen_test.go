package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// screenText is one text as a person reads it off the screen: the name before it, and the lines that follow.
type screenText struct {
	label, name string
	lines       []string
	bytes       int // as the screen says, 0 where it says nothing
}

// readScreen reads a rendered question back: what is tai's own by its mark, the rest line by line, with wrapped lines joined.
func readScreen(t *testing.T, out string) []screenText {
	t.Helper()
	var texts []screenText
	label, size, fresh := "", 0, false
	var rows []string
	name := regexp.MustCompile(`^("(?:[^"\\]|\\.)*") =(?: (.*))?$`)
	flush := func() {
		for _, row := range rows {
			m := name.FindStringSubmatch(row)
			switch {
			case m != nil:
				key, err := strconv.Unquote(m[1])
				if err != nil {
					t.Fatalf("%q: %v", row, err)
				}
				texts = append(texts, screenText{label: label, name: key, bytes: size})
				if m[2] != "" {
					last := &texts[len(texts)-1]
					last.lines = append(last.lines, m[2])
				}
			case len(texts) > 0 && !fresh && texts[len(texts)-1].name != "" && strings.HasPrefix(row, "  "):
				last := &texts[len(texts)-1]
				last.lines = append(last.lines, row[2:])
			default:
				texts = append(texts, screenText{label: label, lines: []string{row}, bytes: size})
			}
			fresh = false
		}
		rows = nil
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, consentMore):
			rows[len(rows)-1] += strings.TrimPrefix(line, consentMore)
		case strings.HasPrefix(line, consentText):
			rows = append(rows, strings.TrimPrefix(line, consentText))
		default:
			own := strings.TrimPrefix(line, consentOwn)
			if strings.HasPrefix(own, "! hidden") {
				continue
			}
			flush()
			label, size, fresh = own, 0, true
			if head, rest, ok := strings.Cut(own, " (lines: "); ok {
				label = head
				fmt.Sscanf(rest[strings.Index(rest, "bytes: "):], "bytes: %d)", &size)
			}
		}
	}
	flush()
	return texts
}

// text is what the lines stand for.
func (s screenText) text(t *testing.T) string {
	t.Helper()
	lines := slices.Clone(s.lines)
	for i, line := range lines {
		if strings.HasPrefix(line, `"`) {
			plain, err := strconv.Unquote(line)
			if err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			lines[i] = plain
		}
	}
	text := strings.Join(lines, "\n")
	if s.bytes == len(text)+1 {
		text += "\n"
	}
	if s.bytes != 0 && s.bytes != len(text) {
		t.Errorf("%q: %d bytes are read off the screen, it says %d", s.name, len(text), s.bytes)
	}
	return text
}

// screenNasty are texts that hide, repaint, answer or look like tai's own lines.
func screenNasty() []string {
	long := strings.Repeat("0123456789 ", 300)
	return []string{
		"ls", "rm -rf x\x1b[2K\x1b[1Als", "evil\rls", "a\bb", "a\tb", `a\tb`, "a\u202eb", `a<U+202E>b`, "a\u001bb", `a\u001bb`, "y\n", "\ny\n", "\n\n", " ", "  two", "trailing  ", `"quoted"`, `"`, `\`, "é\u0301", "a\u3164b", "a\u115fb", "\U000e0061", "日本語", "tai: y  yes, this once",
		"  | x\n  |~ y\ntai: digest 0", "\x00", "\x7f\u0085\u2028", long, long + "\n", long + "\x1b[H\n\tx\n" + `"z"`, "#!/bin/sh\n\tmake\n\\tmake\n", strings.Repeat("line\n", 30), "a\n\nb", `"name" = "x"`, long + "\n" + `"force" = true`, "x\n  \"force\" = true",
	}
}

// TTY-09, TTY-02, F21: from the screen of a question the arguments can be read off byte for byte, at any width: of a command, of a bridged call, of a server's
// argv, of a policy file. Whatever stands in them, two that differ never look alike.
func TestTTY09ScreenExact(t *testing.T) {
	seen := map[string]string{}
	for i, nasty := range screenNasty() {
		for _, width := range []int{0, 72, 200} {
			for _, r := range []policyRequest{
				{Tool: "shell_run", Command: nasty, Args: screenArgs(t, map[string]any{"command": nasty, "cwd": "a\x1bb", "env": map[string]string{"X": nasty}, "timeout_s": 5})},
				{Tool: "mcp:files/write", Server: "files", Pin: strings.Repeat("a", 64), Args: screenArgs(t, map[string]any{"path": "notes.txt", "content": nasty, "mode": "overwrite", "force": true, nasty: "x", "list": []string{nasty, "y\n"}})},
			} {
				r.Destructive = true
				f := &fakePrompter{keys: []string{choiceNo}}
				policyTestDecide(t, newPolicy(policyConfig{Mode: modePrompt, Prompter: f}), r)
				if len(f.asked) != 1 {
					t.Fatalf("%s %d: asked %d times", r.Tool, i, len(f.asked))
				}
				out := renderConsent(f.asked[0].unfolded(), width)
				consentCheck(t, "TTY-09", out, max(width, consentWidth))
				screenHolds(t, out, r.Args)
				if strings.Contains(out, r.Digest) != true || !strings.Contains(out, consentOwn+"digest ") {
					t.Errorf("no digest:\n%s", out)
				}
				key := fmt.Sprint(r.Tool, width, out)
				if was, twice := seen[key]; twice {
					t.Errorf("two calls look alike: %s and %s", was, r.Args)
				}
				seen[key] = string(r.Args)
			}
			argv := []string{"npx", "-y", nasty, "", "a b"}
			out := renderConsent(spawnConsent(spawnInfo{Server: nasty, Argv: argv, Cwd: "/srv", Env: []string{"KEY"}}), width)
			var got []string
			for _, s := range readScreen(t, out) {
				if strings.HasPrefix(s.label, "argv, ") {
					got = append(got, s.text(t))
				}
			}
			if !slices.Equal(got, argv) {
				t.Errorf("argv %q is read as %q:\n%s", argv, got, out)
			}
		}
	}
}

// F21: a policy file that somebody else wrote is shown whole before it counts, whatever its strings hold.
func TestF21PolicyFileScreen(t *testing.T) {
	v := storeTestVault(t, t.TempDir())
	for _, nasty := range screenNasty() {
		if strings.ContainsRune(nasty, 0) {
			continue
		}
		text, err := approvalsText([]preset{{ID: "p-1", Effect: "allow", Tool: "shell_run", Arguments: map[string]string{"command": nasty}}})
		if err != nil {
			t.Fatal(err)
		}
		dir := presetTestDir(t, map[string]string{approvalsName: string(text)})
		f, err := readApprovals(dir, func(string) bool { return false })
		if err != nil || f.Known {
			t.Fatalf("%+v, %v", f, err)
		}
		req, err := confirmRequest(t.Context(), v, []policyFile{f})
		if err != nil {
			t.Fatal(err)
		}
		p := &fakePrompter{keys: []string{choiceYes}}
		req.Person = false
		policyTestDecide(t, newPolicy(policyConfig{Mode: modePrompt, Prompter: p}), req)
		out := renderConsent(p.asked[0], 80)
		var lines []string
		size := 0
		for _, s := range readScreen(t, out) {
			if s.label == "as it is now" {
				lines, size = append(lines, s.lines...), s.bytes
			}
		}
		if got := (screenText{lines: lines, bytes: size}).text(t); got != string(text) {
			t.Errorf("the file is read as\n%s\nof the screen\n%s", got, out)
		}
		_ = os.Remove(filepath.Join(dir, approvalsName))
	}
}

func screenArgs(t *testing.T, args map[string]any) json.RawMessage {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(args); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

// screenHolds reads arguments off a screen and compares them with those of the call.
func screenHolds(t *testing.T, out string, args json.RawMessage) {
	t.Helper()
	members, err := jsonObject(args)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range readScreen(t, out) {
		if s.label == "arguments" {
			got[s.name] = s.text(t)
		}
	}
	if len(got) != len(members) {
		t.Errorf("%d arguments are read, %d are sent:\n%s", len(got), len(members), out)
	}
	for _, m := range members {
		want, isText := jsonString(m.Value)
		have := got[m.Key]
		if !isText {
			want, have = string(compactJSON(nil, m.Value)), string(compactJSON(nil, []byte(have)))
		}
		if have != want {
			t.Errorf("argument %q is read as %.200q, sent was %.200q\n%.2000s", m.Key, have, want, out)
		}
	}
}
