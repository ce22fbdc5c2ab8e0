package main

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func sysBox(t *testing.T, environ []string, state func(context.Context) sysState) (*toolsBox, workspace) {
	t.Helper()
	w, _ := workspaceDirs(t)
	return newToolsBox(t, modeReadOnly, nil, sysTools(w, func() []string { return environ }, runtime.GOOS, filepath.Join(w.root, "home"), time.Now, state)...), w
}

func TestSysInfo(t *testing.T) {
	t.Parallel()
	environ := []string{"PATH=" + sysTestPath(t), "ODD_VALUE=never-shown-1", "B=never-shown-2", "B=never-shown-3", "SHELL=/bin/mysh", "COMSPEC=/bin/mysh"}
	state := func(context.Context) sysState {
		return sysState{Version: "9", Model: "ollama/x", Mode: "prompt", Profile: "default", Root: "/r", Home: "/h", Servers: []sysServer{{"files", "stdio", true}}, Notes: []string{"half of it"}}
	}
	box, w := sysBox(t, environ, state)
	schema, err := compileSchema(box.natives()[0].Output)
	if err != nil {
		t.Fatal(err)
	}
	r := toolsRun(t, box, "sys_info", `{}`)
	var doc struct {
		OS    sysOS
		Shell map[string]string
		Disk  []sysDisk
		Tools struct {
			Found   map[string]string
			Missing []string
		}
		Env struct{ Names []string }
		Tai sysState
	}
	if err := errors.Join(schema.validate(r.Structured), json.Unmarshal(r.Structured, &doc)); err != nil {
		t.Fatalf("%s: %v", r.Structured, err)
	}
	if doc.OS.System != runtime.GOOS || doc.OS.CPUs < 1 || doc.OS.Time.IsZero() {
		t.Errorf("os: %+v", doc.OS)
	}
	if doc.Shell["login"] != "/bin/mysh" || doc.Shell["run"] == "" {
		t.Errorf("shell: %v", doc.Shell)
	}
	if len(doc.Disk) != 3 || doc.Disk[0].Path != w.root || doc.Disk[0].Free == nil || *doc.Disk[0].Free > *doc.Disk[0].Total || doc.Disk[1].Path != w.root {
		t.Errorf("disk: %+v", doc.Disk)
	}
	if doc.Tools.Found["git"] == "" || slices.Contains(doc.Tools.Missing, "git") || !slices.Contains(doc.Tools.Missing, "terraform") {
		t.Errorf("tools: %+v", doc.Tools)
	}
	if want := []string{"B", "COMSPEC", "ODD_VALUE", "PATH", "SHELL"}; !slices.Equal(doc.Env.Names, want) {
		t.Errorf("env: %q, want %q", doc.Env.Names, want)
	}
	if doc.Tai.Model != "ollama/x" || doc.Tai.Mode != "prompt" || len(doc.Tai.Servers) != 1 || len(doc.Tai.Notes) != 1 {
		t.Errorf("tai: %+v", doc.Tai)
	}
	for _, want := range []string{"os\n  system: " + runtime.GOOS, "\ndisk\n", "\nenv\n  names: B COMSPEC", "  servers: files (stdio, enabled)\n", "  note: half of it\n", "  model: ollama/x\n"} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("the text lacks %q:\n%s", want, r.Text)
		}
	}
	if whole := r.Text + string(r.Structured); strings.Contains(whole, "never-shown") {
		t.Errorf("a value of the environment is shown:\n%s", whole)
	}
}

// sysTestPath is a folder of programs in which git is one.
func sysTestPath(t *testing.T) string {
	dir := t.TempDir()
	filesWrite(t, dir, map[string]string{"git": "", "git.exe": ""})
	return dir
}

func TestSysInfoSections(t *testing.T) {
	t.Parallel()
	slow := func(ctx context.Context) sysState { // the vault does not answer
		<-ctx.Done()
		return sysState{Version: "9", Mode: "prompt"}
	}
	box, _ := sysBox(t, []string{"X=1"}, slow)
	for _, section := range []string{"os", "shell", "disk", "tools", "env"} {
		r := toolsRun(t, box, "sys_info", `{"section":"`+section+`"}`)
		var doc map[string]any
		if err := json.Unmarshal(r.Structured, &doc); err != nil || len(doc) != 1 || doc[section] == nil || r.IsError || !strings.HasPrefix(r.Text, section+"\n") {
			t.Errorf("%s: %+v, %v", section, r, err)
		}
	}
	if r := toolsRun(t, box, "sys_info", `{"section":"tai"}`); r.IsError || !strings.Contains(r.Text, "too long") || !strings.Contains(r.Text, "  model: none\n  mode: prompt\n") || !strings.Contains(r.Text, "  servers: none\n") {
		t.Errorf("tai: %+v", r)
	}
	for args, want := range map[string]string{`{"section":"values"}`: "section", `{"section":""}`: "section", `{"section":5}`: "section", `{"all":true}`: "all"} {
		if r := toolsRun(t, box, "sys_info", args); !r.IsError || !strings.Contains(r.Text, want) {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

// A disk that hangs or fails costs its own line only.
func TestSysInfoDisk(t *testing.T) {
	t.Parallel()
	w, _ := workspaceDirs(t)
	hang := make(chan struct{})
	defer close(hang)
	s := sysSource{environ: func() []string { return nil }, goos: runtime.GOOS, root: w.root, home: w.root + "/sub", now: time.Now, space: func(path string) (uint64, uint64, error) {
		switch path {
		case w.root:
			<-hang
		case filepath.Join(w.root, "sub"):
			return 0, 0, errors.New("input/output error")
		}
		return 3 << 30, 1 << 20, nil
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var b strings.Builder
	s.disks(ctx, func(label, format string, v ...any) { b.WriteString(label + " ") })
	list := s.disks(ctx, func(string, string, ...any) {})
	if list[0].Fault != "the disk does not answer" || list[1].Fault != "input/output error" && list[1].Fault != "the disk does not answer" || b.String() != "workspace root tai's home temporary files " {
		t.Errorf("%+v, %q", list, b.String())
	}
}

func TestSysReaders(t *testing.T) {
	if got := linuxName("NAME=x\nPRETTY_NAME=\"Some Linux 12\"\n"); got != "Some Linux 12" {
		t.Errorf("os-release: %q", got)
	}
	if total, free := linuxMemory("MemTotal:       1000 kB\nMemFree: 5 kB\nMemAvailable:    500 kB\n"); total != 1000<<10 || free != 500<<10 {
		t.Errorf("meminfo: %d, %d", total, free)
	}
	if got := darwinName("<key>ProductName</key>\n<string>macOS</string>\n<key>ProductVersion</key>\n\t<string>26.1</string>"); got != "macOS 26.1" {
		t.Errorf("SystemVersion.plist: %q", got)
	}
	for n, want := range map[uint64]string{0: "0 bytes", 1023: "1023 bytes", 1536: "1.5 KiB", 5 << 40: "5.0 TiB", 3 << 50: "3072.0 TiB"} {
		if got := byteSize(n); got != want {
			t.Errorf("byteSize(%d) = %q, want %q", n, got, want)
		}
	}
}
