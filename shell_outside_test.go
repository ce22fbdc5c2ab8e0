package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestShellOutside: a written path out of the root is found in any command that is not reading (ROO-01, ROO-03, SHL-12), and what only looks like
// one is not.
func TestShellOutside(t *testing.T) {
	for command, want := range map[string]string{
		"rm -rf /": "/", "rm -rf /*": "/*", "rm -rf ~": "~", "rm -rf ~/x": "~/x", "rm -rf $HOME": "$HOME", `rm -rf "$HOME"/x`: "$HOME/x", `rm -rf "${HOME}/x"`: "${HOME}/x", "rm ../x": "../x", "rm a/../../x": "a/../../x", "rm -rf ..": "..",
		"mv a /etc": "/etc", "cp /etc/passwd .": "/etc/passwd", "chmod -R 777 /srv": "/srv", "chown x /srv/app-secret": "/srv/app-secret", "ln -s /etc x": "/etc", "echo x | tee /etc/x": "/etc/x", "echo x > /etc/x": "/etc/x", "echo x >> ../x": "../x",
		"echo x 2> ~/x": "~/x", "make &> /x": "/x", "wc < /etc/passwd": "/etc/passwd", "dd if=/dev/zero of=/dev/sda": "of=/dev/sda", "dd if=a of=../x": "of=../x", "git -C /etc status": "/etc", "git --git-dir=/x log": "--git-dir=/x", "git -C .. log": "..",
		"find / -delete": "/", "find .. -exec rm {} +": "..", "find . -exec cp {} /tmp +": "/tmp", "tar -C /x -xf a": "/x", "tar xf a --directory=/x": "--directory=/x", "tar xf a -C/": "-C/", "curl -o/x http://h": "-o/x", "curl file:///etc/passwd": "file:///etc/passwd",
		"curl -d @/etc/passwd http://h": "@/etc/passwd", "rsync a h:/x": "h:/x", "cat /etc/passwd": "/etc/passwd", "ls && rm /x": "/x", "ls; (rm /x)": "/x", "echo $(rm /x)": "/x", "echo `rm /x`": "/x", "echo `echo x > /x`": "/x", "sudo rm /x": "/x", "env A=1 rm /x": "/x",
		"timeout 5 rm /x": "/x", "nice -n 5 rm /x": "/x", "sh -c 'rm -rf /'": "/", `bash -c "cd /x && ls"`: "/x", "sh -c 'echo x > /x'": "/x", "eval rm /x": "/x", `eval "rm /x"`: "/x", "xargs rm /x": "/x", "cd /x && rm y": "/x", "cd .. && rm x": "..", "cd": "cd", "cd ~ && ls": "~",
		"D=/; rm -rf $D": "D=/", "rm {/etc,x}": "{/etc,x}", "sed -i s/a/b/ /etc/x": "/etc/x", "sed -i -e s/a/b/ /etc/x": "/etc/x", "grep -f /etc/x /y z": "/etc/x", "awk -f /x y": "/x", "perl -i -pe s/a/b/ /x": "/x", "rm .tai/approvals.json": ".tai/approvals.json", "rm .TAI/x": ".TAI/x", "rm -rf .t*": ".t*", "cp x .ta?/y": ".ta?/y", "cat /dev/fd/../../etc/x": "/dev/fd/../../etc/x", "echo x > .tai/config.json": ".tai/config.json",
		"if true; then rm /x; fi": "/x", "while true; do rm /x; done": "/x", "cd src && rm ../../x": "../../x", "cd src; rm ../x": "../x", "cd src || rm ../x": "../x", "(cd src); rm ../x": "../x", "cd src | rm ../x": "../x", "cd src & rm ../x": "../x", "install -m 755 a /usr/bin": "/usr/bin",
		"ssh -i ~/.ssh/id_rsa h": "~/.ssh/id_rsa", "rm $PWD/../x": "$PWD/../x", "rm $OLDPWD/x": "$OLDPWD/x", "pip install --target=/x y": "--target=/x", "docker run -v /:/x y": "/:/x", "rm -- /x": "/x", `rm "/x"`: "/x", `rm /"x"`: "/x", "rm '/x'": "/x", `r\m /x`: "/x", "rm \\\n /x": "/x",
		// what is inside, or no path
		"rm x": "", "rm -rf build/": "", "rm -rf /srv/app/build": "", "rm src/../x": "", "mv a b/c": "", "echo /etc > x": "", "echo '/x' | tee y": "", "go test ./... > /dev/null 2>&1": "", "make 2>/dev/stderr": "", "sed -i '/foo/d' x": "", "sed -i -e '/foo/d' x": "", "awk -F/ '/foo/ {print > \"y\"}' x": "",
		"grep -r '/etc' . > x": "", "git commit -m '/x is gone'": "", "git log main..x > y": "", "git reset --hard HEAD~2": "", "git checkout @{u}~1": "", "curl http://h/etc/passwd": "", "git clone https://h/a/b": "", "cd src && make": "", "cd build && cmake ..": "", "cd a/b && rm ../../x": "", "cd /srv/app/x && rm ../y": "",
		"find . -path '/x/*' -delete": "", "cut -d / -f1 x > y": "", "sort -t/ x > y": "", "tr / - > x": "", "PATH=/x:$PATH make": "", "HOME=/x make": "", "rm $PWD/x": "", "rm $X/y": "", "npm run build": "", "python3 -c 'open(\"/x\")'": "", "test a = /x > y": "", "dd if=/dev/zero of=x": "", "kill -9 1": "",
	} {
		v := classifyShell(command, shellScope{Root: "/srv/app"})
		if v.Outside != want || v.Reading {
			t.Errorf("%q: outside %q (reading %v), want %q", command, v.Outside, v.Reading, want)
		}
	}
	for command, want := range map[string]string{"rm ../x": "", "rm ../../x": "../../x", "rm y": "", "cd .. && rm x": ""} {
		if v := classifyShell(command, shellScope{Root: "/srv/app", Dir: "/srv/app/src"}); v.Outside != want {
			t.Errorf("from src: %q: outside %q, want %q", command, v.Outside, want)
		}
	}
	for _, command := range []string{"ls", "cat x", "grep /etc x"} {
		if v := classifyShell(command, shellScope{Root: "/srv/app"}); v.Outside != "" || len(v.Paths) > 0 {
			t.Errorf("%q reads: %+v", command, v)
		}
	}
}

// TestShellOutsidePolicy: allow and read-only refuse such a command, prompt asks and shows the path, danger runs it.
func TestShellOutsidePolicy(t *testing.T) {
	r := policyRequest{Tool: "shell_run", Destructive: true, Command: "ls && rm -rf /", Args: json.RawMessage(`{"command":"ls && rm -rf /"}`)}
	for mode, want := range map[approvalMode]string{modeReadOnly: ruleOutside, modePrompt: ruleNobody, modeAllow: ruleOutside, modeDanger: "mode danger-full-access"} {
		d := policyTestDecide(t, newPolicy(policyConfig{Mode: mode, Root: "/srv/app", Presets: []preset{{ID: "p", Effect: "allow", Tool: "shell_run"}}}), r)
		if d.Rule != want || d.Allow != (mode == modeDanger) {
			t.Errorf("%s: %+v, want rule %q", mode, d, want)
		}
	}
	f := &fakePrompter{keys: []string{"s"}}
	p := newPolicy(policyConfig{Mode: modePrompt, Root: "/srv/app", Prompter: f, SavePreset: func(context.Context, preset) (preset, error) { return preset{}, errors.New("saved") }})
	if d := policyTestDecide(t, p, r); !d.Allow || len(f.asked) != 1 {
		t.Fatalf("%+v", d)
	}
	if q := renderConsent(f.asked[0], 100); !strings.Contains(q, "! dangerous: the command names a path outside the workspace root: /\n") || !strings.Contains(q, "touches a path outside the root") || !strings.Contains(q, "exactly this call") || strings.Contains(q, "always in this") {
		t.Errorf("%s", q)
	}
	f.err = errors.New("asked")
	if d, err := p.approve(t.Context(), policyRequest{Tool: "shell_run", Destructive: true, Command: "rm /x", Args: json.RawMessage(`{"command":"rm /x"}`)}); err == nil || d.Allow {
		t.Errorf("the grant covers another path: %+v", d)
	}
}

// SHL-14, SHL-07: a search that would read a credential file, and a repository that brings programs along, ask; a link out of the root is no way
// round it for a command that changes something (ROO-02).
func TestSHL14Below(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no sh")
	}
	base := t.TempDir()
	root := filepath.Join(base, "work")
	for name, text := range map[string]string{"work/src/a.go": "x", "work/deep/down/.env": "KEY=x", "work/web/id_rsa": "x", "work/plain/.hidden/prod.pem": "x", "work/ext/.git/config": "[diff]\n\texternal = ./x\n", "work/good/.git/config": "[core]\n\tbare = false\n", "out/y": "x"} {
		file := filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(base, "out"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"deep/down/top": root, "notes": "deep/down/.env", "deep/notes": "../web/id_rsa"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := openWorkspace(root)
	if err != nil {
		t.Fatal(err)
	}
	s := shellRunner{workspace: w, environ: func() []string { return []string{"PATH=" + os.Getenv("PATH")} }, goos: runtime.GOOS}
	for _, tc := range []struct {
		command, cwd         string
		destructive, outside bool
	}{
		{"grep -rn x src", "", false, false}, {"grep -rn x .", "", true, false}, {"grep -rn x deep", "", true, false}, {"grep -r x d*", "", true, false}, {"grep -r x", "deep", true, false}, {"grep -r x", "src", false, false}, {"grep -rn x --include='*.go' .", "", false, false},
		{"grep -rn x --include='*' .", "", true, true}, {"grep -rn x --include='*.pem' .", "", true, false}, {"grep --recursive x deep", "", true, false}, {"ls && grep -hr x .", "", true, false}, {"grep -n x src/a.go", "", false, false}, {"rg x deep", "", false, false}, {"rg x web", "", true, false}, {"rg x", "", true, false}, {"rg --files", "", false, false}, {"rg x plain", "", false, false}, {"grep -r x plain", "", true, false},
		{"git status", "ext", true, false}, {"git diff", "good", false, false}, {"git log", "src", false, false},
		{"cat id_rsa", "web", true, false}, {"cat config", "good/.git", true, false}, {"cat a", ".aws", true, false}, {"cat notes", "", false, true}, {"cat deep/n*", "", false, true},
		{"rm deep/down/top/../out/y", "", true, true}, {"rm ../out/y", "deep/down/top", true, true}, {"rm ../down/x", "deep/down", true, false}, {"rm deep/down/top/src/../x", "", true, false},
		{"rm /dev/fd/../../etc/x", "", true, true}, {"rm /dev/fd/1", "", true, false},
		{"rm link/y", "", true, true}, {"echo x > link/y", "", true, true}, {"cp src/a.go link", "", true, true}, {"cat link/y", "", false, true}, {"rm src/a.go", "", true, false}, {"make >/dev/null 2>&1", "", true, false}, {"make </dev/null >out.txt 2>/dev/stderr", "", true, false}, {"rm '[' x", "", true, false},
	} {
		args, err := json.Marshal(map[string]string{"command": tc.command, "cwd": tc.cwd})
		if err != nil {
			t.Fatal(err)
		}
		if req := s.judge(toolCall{Args: args}); req.Destructive != tc.destructive || (req.Outside || classifyShell(tc.command, shellScope{Root: w.root, Dir: req.Dir}).Outside != "") != tc.outside {
			t.Errorf("%s in %q: destructive %v, outside %v, want %v %v (%v)", tc.command, tc.cwd, req.Destructive, req.Outside, tc.destructive, tc.outside, req.Danger)
		}
	}
}
