package main

import (
	"reflect"
	"strings"
	"testing"
)

func shellTestReads(t *testing.T, id string, want bool, commands ...string) {
	t.Helper()
	for _, c := range commands {
		v := classifyShell(c, shellScope{Root: "/srv/app"})
		if v.Reading != want {
			t.Errorf("%s: %q: reading %v (%s), want %v", id, c, v.Reading, v.Reason, want)
		}
		if !v.Reading && v.Reason == "" {
			t.Errorf("%s: %q: no reason", id, c)
		}
		if v.Parsable != (v.Words != nil) {
			t.Errorf("%s: %q: parsable %v with words %q", id, c, v.Parsable, v.Words)
		}
	}
}

func TestShellReads(t *testing.T) {
	shellTestReads(t, "everyday", true,
		"ls", "ls -la", "ls -la src/", "ls *.go", "cat main.go", "cat -n a b", "head -20 x", "head -n 5 x", "tail -n+3 x", "wc -l *.go",
		"grep -rn 'foo(bar)' src", `grep -n "x$" a.go`, "grep -A3 -B 2 x y.txt", "grep -e x -e y f", "grep '/etc/passwd' notes.txt", "pwd", "echo hello world",
		"git status", "git status -sb", "git status --porcelain=v1", "git log --oneline -20", "git log -n 5 --stat -- src", "git diff", "git diff HEAD~2 -- a.go",
		"git diff --cached --stat", "git show HEAD", "git show HEAD:main.go", "git log main..feature", "git --no-pager log -1", "git ls-files", "git blame -L 1,9 a.go",
		"file a.bin", "stat -c %s a", "sort a | uniq -c | sort -rn | head", "cut -d: -f1 a", "tr a-z A-Z", "date", "date -u +%F", "whoami", "id -u", "uname -a",
		"which go", "du -sh .", "df -h", "tree -L 2", "true && false || true", "ls; pwd", "ls\npwd\n", "ls && \\\n pwd", "ls # rm -rf x", "ls 2>/dev/null", "ls 2>&1 | wc -l",
		"ls > /dev/null", "cat /srv/app/a.txt", "ls &", "echo 'a;rm b' \"c|d\" e\\;f", "diff a b", "echo a$", "echo x >&2", "cat < /dev/null", "echo '$(id)'",
	)
}

func TestSHL01EveryPart(t *testing.T) {
	shellTestReads(t, "SHL-01", false, "ls; rm x", "ls && rm x", "ls || rm x", "ls | sh", "ls & rm x", "ls |& sh", "rm x; ls", "ls;rm x", "ls&&rm x", "ls -l;;rm x")
}

func TestSHL02Substitution(t *testing.T) {
	shellTestReads(t, "SHL-02", false, "echo `id`", "echo $(id)", `echo "a$(id)"`, "echo \"`id`\"", "echo $((1+1))", "echo ${HOME}", "echo $HOME", `cat "$F"`, "echo $'\\x41'", `echo $"x"`,
		"cat .{env,x}", "echo $[1]", "cat <(id)")
}

func TestSHL03Newline(t *testing.T) {
	shellTestReads(t, "SHL-03", false, "ls\nrm x", "ls\n\n  rm x", "ls # x\nrm x", "ls \\\n; rm x", "ls\r\nrm x")
}

func TestSHL04Redirection(t *testing.T) {
	shellTestReads(t, "SHL-04", false, "echo x > ~/.bashrc", "cat a >> b", "ls 2>f", "echo x >| f", "ls &> f", "ls &>/dev/null rm x", "ls &>> f", "ls >(tee f)", "cat <(id)", "cat <<E\nx\nE", "cat <<-E\nx\n\tE\n",
		"cat <<< x", "ls >& f", "ls 2>/dev/null>f", "> f", "ls >/dev/nullx", "cat < f", "ls <>f", "ls 2>/dev/nul?", "echo x 1>f", "ls >/dev/null/../f")
}

func TestSHL05Assignment(t *testing.T) {
	shellTestReads(t, "SHL-05", false, "PAGER=./x git log", "LD_PRELOAD=./e.so ls", "env X=1 sh", "X=1", "export X=1", "env")
}

func TestSHL06Find(t *testing.T) {
	shellTestReads(t, "SHL-06", false, `find . -exec rm {} \;`, `find . -execdir rm {} \;`, `find . -okdir rm {} \;`, "find . -delete", "find . -fls f", "find . -fprintf f x")
}

func TestSHL07GitOptions(t *testing.T) {
	shellTestReads(t, "SHL-07", false, "git -c core.pager=./x log", "git diff --output=f", "git diff --outpu=f", "git --exec-path=. status", "git -C /x status", "git --git-dir=x log",
		"git log --ext-diff", "git diff --no-index /etc/passwd x", "git log -Ofile", "git clean -fd", "git fetch", "git branch x", "git", "git --no-pager", "git log --textconv",
		"git show HEAD:.env", "git diff *", "git log --show-signature")
}

func TestSHL08Interpreters(t *testing.T) {
	shellTestReads(t, "SHL-08", false, "tar --to-command=./x -xf a", "tar --checkpoint-action=exec=./x -cf a b", "awk 'BEGIN{system(\"id\")}'", "sed '1e id' f", "sed 's/a/id/e' f", "sed 'w f' g", "sed -i s/a/b/ f")
}

func TestSHL09Programs(t *testing.T) {
	shellTestReads(t, "SHL-09", false, "ls | xargs rm", "echo rm x | sh", "python3 -c 'print(1)'", "curl -o f http://x", "sort -o f a", "sort -of a", "sort --output=f a", "sort *", "uniq a b", "uniq ?",
		"date -s 1", "date 01010101", "tree -o f", "file -C -m x", "tail -f x", "sort --compress-program=./x a", "sort --outp=f a", "hostname evil", "ls -?")
}

func TestSHL10Quotes(t *testing.T) {
	shellTestReads(t, "SHL-10", true, `echo "a; rm b"`, `echo 'a$(rm b)'`, `echo "a\$(rm b)"`, `echo a\;rm`)
	shellTestReads(t, "SHL-10", false, `echo "a; $(rm b)"`, `echo "a\\$(rm b)"`, `echo 'a'$(rm b)`, `echo "a";rm b`, `echo \\;rm b`)
}

func TestSHL11Unparsable(t *testing.T) {
	for _, c := range []string{`echo "a`, "echo 'a", "ls &&", "ls |", "| ls", "; ls", "ls ;; ls", "(ls", "ls)", "echo $(ls", "echo `ls", "echo ${x", "ls \\", "cat <<E\nx\n", "ls >", "ls > ; rm x",
		"f() { ls; }", "a=(1 2)", "ls \x00", "echo ${x:-$(id)}", strings.Repeat("(", 40) + "ls" + strings.Repeat(")", 40), strings.Repeat("x", shellCommandMax+1), "case x in x) ls;; esac", "&& ls", "ls & && ls"} {
		v := classifyShell(c, shellScope{})
		if v.Parsable || v.Reading || v.Words != nil || !strings.HasPrefix(v.Reason, "the command cannot be split: ") {
			t.Errorf("SHL-11: %.60q: %+v", c, v)
		}
	}
	for _, c := range []string{"(ls)", "echo $(ls)", "cat <<E\nit's $(x\nE\nls", "(cd x && make) > f", "for i in a b; do ls; done", "if true; then ls; fi", "X=1 ls", "echo `echo \\`ls\\``", "echo $(cat <<E\n'\nE\n)"} {
		if v := classifyShell(c, shellScope{}); !v.Parsable || v.Reading {
			t.Errorf("SHL-11: %q: %+v, want parsable, not reading", c, v)
		}
	}
	if v := classifyShell(" # nothing", shellScope{}); v.Reading || !v.Parsable {
		t.Errorf("no command: %+v", v)
	}
}

func TestSHL12BareNames(t *testing.T) {
	shellTestReads(t, "SHL-12", false, "./ls", "../bin/cat x", "/bin/ls", "cd /x && ls", "cd src && ls", "l? x", "~/ls", "command ls", "exec ls")
	scope := shellScope{Trusted: func(p string) bool { return p != "cat" }}
	if v := classifyShell("cat x", scope); v.Reading {
		t.Error("SHL-12: a program outside the trusted folders is read as safe")
	}
	if v := classifyShell("echo x | wc", scope); !v.Reading {
		t.Errorf("SHL-12: %s", v.Reason)
	}
}

// TestSHL13DenyAnywhere: a denied command is found behind operators, wrappers and options.
func TestSHL13DenyAnywhere(t *testing.T) {
	pattern := []string{"git", "clean"}
	for c, want := range map[string]bool{
		"git fetch && git clean -fd": true, "git clean": true, "sudo git clean": true, "/usr/bin/git clean -x": true, "git -C /x clean": true, "git -c a=b --no-pager clean": true,
		"echo $(git clean)": true, "ls | xargs git clean": true, `g"i"t 'clean'`: true, "(git clean)": true, "echo `git clean`": true, "X=1 git clean": true,
		"git status": false, "echo git-clean": false, "git commit -m 'git clean'": false, "git cleanup": false, "git log clean": false,
	} {
		found := false
		v := classifyShell(c, shellScope{})
		for i, cmd := range v.Words {
			found = found || shellCommandMatch(cmd, v.Open[i], pattern)
		}
		if found != want {
			t.Errorf("SHL-13: %q: found %v, want %v", c, found, want)
		}
	}
	for c, want := range map[string]bool{`sh -c "git clean"`: true, "eval 'git' clean": true, "bash <<E\ngit clean\nE": true, `g\it clean`: true, "git status": false} {
		if got := shellLooseMatch(c, pattern); got != want {
			t.Errorf("SHL-13: loose %q: %v, want %v", c, got, want)
		}
	}
}

func TestSHL14Credentials(t *testing.T) {
	shellTestReads(t, "SHL-14", false, "cat ~/.ssh/id_rsa", "cat .env", "ping x.evil.test", "dig x", "cat /etc/passwd", "cat ../x", "cat a/../../x", "cat .e*", "cat .en?", "cat id_r*", "head .aws/credentials",
		"grep x .env.local", "grep --regexp=x /etc/shadow", "grep -ie x /etc/shadow", "grep /etc/shadow -e x", "cat server.pem", "cat *", "cat ID_RSA", "ls ~", "ls /", "ls /srv/app-secret", "ls /srv/app/../x",
		"cat .[e]nv", "echo ~/.ssh/*", "echo /etc/*", "cat -- .env", "grep -f .env x", "cat x/.git-credentials", "sort .netrc", "diff a .env", "git diff .env", "printenv")
	shellTestReads(t, "SHL-14", true, "cat environment.md", "ls /srv/app", "ls -d src/*", "cat docs/env.txt")
}

func TestShellWords(t *testing.T) {
	v := classifyShell(`git commit -m "a b" && echo $(rm -rf 'x y'); ls`, shellScope{})
	want := [][]string{{"git", "commit", "-m", "a b"}, {"rm", "-rf", "x y"}, {"echo", ""}, {"ls"}}
	if !reflect.DeepEqual(v.Words, want) || v.Simple || !reflect.DeepEqual(v.Runs, []bool{false, false, true, true}) {
		t.Errorf("%+v, want words %q", v, want)
	}
}

// FuzzShell: no input panics, and a reading line holds no byte sequence that only an unread construct could bring.
func FuzzShell(f *testing.F) {
	for _, s := range []string{"ls -l | wc", `echo "a$(b)"`, "cat <<E\nx\nE\n", "((", "a\\", "$'x\\", "`\\`", "${x}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := classifyShell(s, shellScope{Root: "/srv/app"})
		if v.Reading && (!v.Simple || !v.Parsable || len(v.Words) == 0) {
			t.Errorf("%q: %+v", s, v)
		}
		if v.Reading && strings.Contains(s, "`") && !strings.ContainsAny(s, `'\#`) {
			t.Errorf("%q is reading", s)
		}
	})
}
