package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// readmeStep is one command of a tested block with what the README shows of its output.
type readmeStep struct{ command, want string }

// readmeSteps gives the commands of the blocks marked as tested: "$ " begins one, "> " goes on with it, the rest is output.
func readmeSteps(t *testing.T, text string) []readmeStep {
	t.Helper()
	var steps []readmeStep
	inside := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			inside = strings.TrimSpace(line) == "```console tested"
			continue
		}
		command, begins := strings.CutPrefix(line, "$ ")
		more, goesOn := strings.CutPrefix(line, "> ")
		switch {
		case !inside:
		case begins:
			steps = append(steps, readmeStep{command: command})
		case len(steps) == 0:
			t.Fatalf("README.md: a tested block begins with output: %q", line)
		case goesOn:
			steps[len(steps)-1].command += more
		default:
			steps[len(steps)-1].want += line
		}
	}
	return steps
}

// readmeNormal puts one name for each time, run, key, size and revision, and the README's home for this one.
func readmeNormal(s, home string) string {
	s = strings.ReplaceAll(s, home, "/home/me")
	s = regexp.MustCompile(`[0-9a-f]{16}\.key`).ReplaceAllString(s, "ID.key")
	s = regexp.MustCompile(`\d+ bytes`).ReplaceAllString(s, "N bytes")
	s = regexp.MustCompile(`schema \d+`).ReplaceAllString(s, "schema N") // of this release
	s = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`).ReplaceAllString(s, "TIME")
	s = regexp.MustCompile(`cli-[0-9a-f]{16}`).ReplaceAllString(s, "RUN")
	s = regexp.MustCompile(`\bm-[0-9a-z]{4}\b`).ReplaceAllString(s, "MEMORY")
	s = regexp.MustCompile(`sha256:[0-9a-f]{64}`).ReplaceAllString(s, "KEY")
	return regexp.MustCompile(`(?m)^(tai \d+\.\d+\.\d+)( [0-9a-f]{12})?$`).ReplaceAllString(s, "$1")
}

// readmeBuild builds tai with the README's own command, the binary elsewhere.
func readmeBuild(t *testing.T, text, to string) {
	t.Helper()
	line := readmeLine(t, text, "CGO_ENABLED=0 go build ")
	build, found := strings.CutSuffix(line, " && ./tai")
	env, args, _ := strings.Cut(build, " ")
	words := strings.Fields(args)
	i := len(words) - 2
	if !found || i < 3 || words[i] != "tai" || words[i-1] != "-o" {
		t.Fatalf("README.md: the build command %q does not make tai and run it", line)
	}
	words[i] = to
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Env = append(os.Environ(), env)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
}

func readmeLine(t *testing.T, text, prefix string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("README.md has no line that begins with %q", prefix)
	return ""
}

// TestReadme builds tai as the README says and runs its tested blocks in an empty folder with an empty home.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > 240 {
		t.Errorf("README.md has %d lines, at most 240", n)
	}
	steps := readmeSteps(t, string(text))
	if len(steps) < 8 {
		t.Fatalf("README.md has only %d tested commands", len(steps))
	}
	if runtime.GOOS == "windows" {
		t.Skip("its commands are for a Unix shell")
	}
	bin, home, work := t.TempDir(), t.TempDir(), t.TempDir()
	readmeBuild(t, string(text), filepath.Join(bin, "tai"))
	run := ""
	for _, s := range steps {
		if run != "" {
			s.command = regexp.MustCompile(`cli-[0-9a-f]{16}`).ReplaceAllString(s.command, run)
		}
		var out bytes.Buffer
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", s.command)
		cmd.Dir, cmd.Stdout, cmd.Stderr = work, &out, &out
		cmd.Env = []string{"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + home}
		err := cmd.Run()
		if _, exited := err.(*exec.ExitError); err != nil && !exited {
			t.Fatal(err)
		}
		if failed := strings.HasPrefix(s.want, "tai: ") || strings.HasPrefix(s.want, "tampered with"); failed != (err != nil) {
			t.Errorf("%s: %v\n%s", s.command, err, out.String())
		}
		if got, want := readmeNormal(out.String(), home), readmeNormal(s.want, home); got != want {
			t.Errorf("$ %sgives\n%s\nREADME.md shows\n%s", s.command, got, want)
		}
		if id := regexp.MustCompile(`cli-[0-9a-f]{16}`).FindString(out.String()); id != "" && run == "" {
			run = id
		}
	}
	if entries, err := os.ReadDir(work); err != nil || len(entries) != 2 || entries[0].Name() != "note.txt" || entries[1].Name() != "tea.csv" {
		t.Errorf("the workspace holds other than the files that the README makes: %v, %v", entries, err)
	}
}

// TestReadmeTestCommand holds the README's test command to the one that decides what may land.
func TestReadmeTestCommand(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	ci, err := os.ReadFile(filepath.Join(".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	want := readmeLine(t, string(text), "CGO_ENABLED=0 go test")
	_, after, found := strings.Cut(string(ci), `step "the README's test command"`+"\n")
	got, _, _ := strings.Cut(after, "\n")
	if !found || got != want {
		t.Errorf(".ci/run tests with %q, README.md says %q", got, want)
	}
}
