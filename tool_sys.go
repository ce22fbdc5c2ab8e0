// This file holds sys_info: what a model should know of the machine and of tai before it acts. Of the environment it gives names only, never a
// value.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	sysTime    = 2 * time.Second // for what the system or a disk may be slow to say
	sysFileMax = 64 << 10        // bytes of a file that describes the system
	sysEnvMax  = 1000            // names of variables
)

// sysState is what tai says of itself.
type sysState struct {
	Version string      `json:"version"`
	Model   string      `json:"model,omitempty"`
	Mode    string      `json:"mode"`
	Profile string      `json:"profile,omitempty"`
	Root    string      `json:"root"`
	Home    string      `json:"home"`
	Servers []sysServer `json:"servers"`
	Notes   []string    `json:"notes,omitempty"` // what could not be found out
}

type sysServer struct {
	Name      string `json:"name"`
	Transport string `json:"transport"`
	Enabled   bool   `json:"enabled"` // for the profile
}

// sysSource is where sys_info looks. state may wait; it gets a deadline.
type sysSource struct {
	environ func() []string
	goos    string
	root    string
	home    string
	now     func() time.Time
	state   func(ctx context.Context) sysState
	shell   shellRunner
	space   func(path string) (total, free uint64, err error)
}

// sysSections are the sections in the order in which they are given.
func sysSections() []string { return []string{"os", "shell", "disk", "tools", "env", "tai"} }

// sysTools gives sys_info over w.
func sysTools(w workspace, environ func() []string, goos, home string, now func() time.Time, state func(context.Context) sysState) []tool {
	s := sysSource{environ, goos, w.root, home, now, state, newShellRunner(w, environ, goos), diskSpace}
	return []tool{{
		Name: "sys_info", Family: "system", Core: true,
		Description: "Describe the system: OS, shell, disk space, programs that are installed, names of environment variables (never values), and tai itself: model, mode, servers, workspace root.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{
"section":{"type":"string","enum":["` + strings.Join(sysSections(), `","`) + `"],"description":"Only this section (default: all)."}}}`),
		Output: json.RawMessage(`{"type":"object","properties":{
"os":{"type":"object","properties":{"system":{"type":"string"},"name":{"type":"string"},"kernel":{"type":"string"},"arch":{"type":"string"},"cpus":{"type":"integer"},"host":{"type":"string"},
"memory_total":{"type":"integer","description":"Bytes."},"memory_free":{"type":"integer","description":"Bytes that programs can still get."},"time":{"type":"string"}}},
"shell":{"type":"object","properties":{"run":{"type":"string","description":"What shell_run and proc_start use."},"real":{"type":"string"},"login":{"type":"string"}}},
"disk":{"type":"array","items":{"type":"object","properties":{"use":{"type":"string"},"path":{"type":"string"},"total":{"type":"integer"},"free":{"type":"integer"},"fault":{"type":"string"}}}},
"tools":{"type":"object","properties":{"found":{"type":"object","description":"Programs and their paths.","additionalProperties":{"type":"string"}},"missing":{"type":"array","items":{"type":"string"}}}},
"env":{"type":"object","properties":{"names":{"type":"array","items":{"type":"string"}},"left_out":{"type":"integer"}}},
"tai":{"type":"object","properties":{"version":{"type":"string"},"model":{"type":"string"},"mode":{"type":"string"},"profile":{"type":"string"},"root":{"type":"string"},"home":{"type":"string"},
"servers":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"transport":{"type":"string"},"enabled":{"type":"boolean"}}}},"notes":{"type":"array","items":{"type":"string"}}}},` + toolRecordSchema + `}}`),
		Hints: toolHints{ReadOnly: true, Idempotent: true},
		run:   s.run,
	}}
}

func (s sysSource) run(ctx context.Context, c toolCall) (toolResult, error) {
	var args struct{ Section string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, sysTime)
	defer cancel()
	doc := map[string]any{}
	var b textBuilder
	for _, section := range sysSections() {
		if args.Section != "" && args.Section != section {
			continue
		}
		b.WriteString(section + "\n")
		say := func(label, format string, v ...any) {
			if text := fmt.Sprintf(format, v...); text != "" {
				fmt.Fprintf(&b, "  %s: %s\n", label, visibleLine(text))
			}
		}
		switch section {
		case "os":
			doc[section] = s.system(say)
		case "shell":
			doc[section] = s.shells(say)
		case "disk":
			doc[section] = s.disks(ctx, say)
		case "tools":
			doc[section] = s.programs(say)
		case "env":
			doc[section] = s.names(say)
		case "tai":
			doc[section] = s.tai(ctx, say)
		}
	}
	return toolResult{Text: b.String(), Structured: procJSON(doc)}, nil
}

// sayer writes one line of a section; an empty text is left out.
type sayer func(label, format string, v ...any)

type sysOS struct {
	System string    `json:"system"`
	Name   string    `json:"name,omitempty"`
	Kernel string    `json:"kernel,omitempty"`
	Arch   string    `json:"arch"`
	CPUs   int       `json:"cpus"`
	Host   string    `json:"host,omitempty"`
	Total  uint64    `json:"memory_total,omitempty"`
	Free   uint64    `json:"memory_free,omitempty"`
	Time   time.Time `json:"time"`
}

func (s sysSource) system(say sayer) sysOS {
	o := sysOS{System: s.goos, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Time: s.now()}
	o.Host, _ = os.Hostname() // without one the line is left out
	switch s.goos {
	case "linux":
		o.Name = linuxName(readSystemFile("/etc/os-release"))
		o.Kernel = strings.TrimSpace(readSystemFile("/proc/sys/kernel/osrelease"))
		o.Total, o.Free = linuxMemory(readSystemFile("/proc/meminfo"))
	case "darwin":
		o.Name = darwinName(readSystemFile("/System/Library/CoreServices/SystemVersion.plist"))
	}
	say("system", "%s", strings.TrimSpace(o.System+" "+o.Arch+" "+o.Kernel))
	say("name", "%s", o.Name)
	say("host", "%s", o.Host)
	if o.Total > 0 {
		say("memory", "%s, %s free", byteSize(o.Total), byteSize(o.Free))
	}
	say("cpus", "%d", o.CPUs)
	say("time", "%s", o.Time.Format(time.RFC3339))
	return o
}

// readSystemFile reads a file of the system's own; "" if it is not there.
func readSystemFile(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, sysFileMax))
	if err != nil {
		return ""
	}
	return string(b)
}

// linuxName finds PRETTY_NAME (os-release(5)).
func linuxName(text string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(value, `"'`)
		}
	}
	return ""
}

// linuxMemory finds MemTotal and MemAvailable, which are given in KiB (proc_meminfo(5)).
func linuxMemory(text string) (total, free uint64) {
	for line := range strings.Lines(text) {
		var n uint64
		if _, err := fmt.Sscanf(line, "MemTotal: %d kB", &n); err == nil {
			total = n << 10
		}
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &n); err == nil {
			free = n << 10
		}
	}
	return total, free
}

// darwinName finds ProductName and ProductVersion in SystemVersion.plist.
func darwinName(text string) string {
	value := func(key string) string {
		_, rest, _ := strings.Cut(text, "<key>"+key+"</key>")
		_, rest, _ = strings.Cut(rest, "<string>")
		v, _, _ := strings.Cut(rest, "</string>")
		return v
	}
	return strings.TrimSpace(value("ProductName") + " " + value("ProductVersion"))
}

// byteSize shows a size for people.
func byteSize(n uint64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	v, i := float64(n), 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

func (s sysSource) shells(say sayer) map[string]string {
	out := map[string]string{"run": s.shell.argv("")[0]}
	if real, err := filepath.EvalSymlinks(out["run"]); err == nil && real != out["run"] {
		out["real"] = real
	}
	name := "SHELL"
	if s.goos == "windows" {
		name = "COMSPEC"
	}
	if login := envValue(s.environ(), name, s.goos); login != "" {
		out["login"] = login
	}
	say("shell_run uses", "%s", out["run"])
	say("which is", "%s", out["real"])
	say("the person's own", "%s", out["login"])
	return out
}

type sysDisk struct {
	Use   string  `json:"use"`
	Path  string  `json:"path"`
	Total *uint64 `json:"total,omitempty"`
	Free  *uint64 `json:"free,omitempty"`
	Fault string  `json:"fault,omitempty"`
}

// disks asks for all places at once: one that hangs, such as a lost network drive, costs its own line only.
func (s sysSource) disks(ctx context.Context, say sayer) []sysDisk {
	out := []sysDisk{{Use: "workspace root", Path: s.root}, {Use: "tai's home", Path: existingFolder(s.home)}, {Use: "temporary files", Path: os.TempDir()}}
	type answer struct {
		total, free uint64
		err         error
	}
	answers := make([]chan answer, len(out))
	for i, d := range out {
		answers[i] = make(chan answer, 1)
		go func() { // ends when the system answers; nothing can end it sooner
			total, free, err := s.space(d.Path)
			answers[i] <- answer{total, free, err}
		}()
	}
	for i := range out {
		d := &out[i]
		select {
		case a := <-answers[i]:
			if a.err == nil {
				d.Total, d.Free = &a.total, &a.free
				say(d.Use, "%s free of %s, at %s", byteSize(a.free), byteSize(a.total), d.Path)
				continue
			}
			d.Fault = bareError(a.err).Error()
		case <-ctx.Done():
			d.Fault = "the disk does not answer"
		}
		say(d.Use, "%s, at %s", d.Fault, d.Path)
	}
	return out
}

// sysPrograms are the programs that sys_info looks for.
func sysPrograms() []string {
	return []string{"awk", "bash", "brew", "bun", "cargo", "cc", "clang", "cmake", "curl", "deno", "docker", "dotnet", "fd", "ffmpeg", "find", "fish", "gcc", "gh", "git", "go", "gofmt",
		"grep", "java", "jq", "kubectl", "make", "mvn", "ninja", "node", "npm", "npx", "openssl", "perl", "php", "pip", "pnpm", "podman", "psql", "python", "python3", "rg", "rsync", "ruby",
		"rustc", "sed", "sqlite3", "ssh", "sudo", "tar", "terraform", "tmux", "uv", "uvx", "vim", "wget", "yarn", "zig", "zip", "zsh"}
}

func (s sysSource) programs(say sayer) any {
	out := struct {
		Found   map[string]string `json:"found"`
		Missing []string          `json:"missing"`
	}{map[string]string{}, []string{}}
	var found []string
	for _, name := range sysPrograms() {
		if file, _ := s.shell.find(name); file != "" {
			out.Found[name] = file
			found = append(found, name)
		} else {
			out.Missing = append(out.Missing, name)
		}
	}
	say("found", "%s", strings.Join(found, " "))
	say("not found", "%s", strings.Join(out.Missing, " "))
	return out
}

func (s sysSource) names(say sayer) any {
	out := struct {
		Names   []string `json:"names"`
		LeftOut int      `json:"left_out"`
	}{Names: []string{}}
	for _, kv := range s.environ() {
		if name, _, _ := strings.Cut(kv, "="); name != "" { // Windows has names that begin with =
			out.Names = append(out.Names, visibleLine(clip(name, 200)))
		}
	}
	slices.Sort(out.Names)
	out.Names = slices.Compact(out.Names)
	if n := len(out.Names); n > sysEnvMax {
		out.Names, out.LeftOut = out.Names[:sysEnvMax], n-sysEnvMax
	}
	say("names", "%s", strings.Join(out.Names, " "))
	if out.LeftOut > 0 {
		say("left out", "%d", out.LeftOut)
	}
	return out
}

func (s sysSource) tai(ctx context.Context, say sayer) sysState {
	t := s.state(ctx)
	if ctx.Err() != nil {
		t.Notes = append(t.Notes, "some of it took too long to find out")
	}
	t.Servers = orEmpty(t.Servers)
	say("version", "%s", t.Version)
	model := t.Model
	if model == "" {
		model = "none"
	}
	say("model", "%s", model)
	say("mode", "%s", t.Mode)
	say("profile", "%s", t.Profile)
	say("workspace root", "%s", t.Root)
	say("home", "%s", t.Home)
	var names []string
	for _, server := range t.Servers {
		state := "disabled"
		if server.Enabled {
			state = "enabled"
		}
		names = append(names, fmt.Sprintf("%s (%s, %s)", server.Name, server.Transport, state))
	}
	if names == nil {
		names = []string{"none"}
	}
	say("servers", "%s", strings.Join(names, ", "))
	for _, note := range t.Notes {
		say("note", "%s", note)
	}
	return t
}
