package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// taskMessage is a message of a request as taskModel reads it.
type taskMessage struct {
	Role    string
	Content string
	Call    string `json:"tool_call_id"`
}

// taskModel is an endpoint that answers each conversation by its first message: several may talk to it at the same time.
type taskModel struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string]int
}

// newTaskModel asks answer for the events of the n-th reply, counted from 0, to the conversation that begins with task.
func newTaskModel(t *testing.T, answer func(task string, n int, msgs []taskMessage) []string) *taskModel {
	t.Helper()
	m := &taskModel{seen: map[string]int{}}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Messages []taskMessage }
		b, err := io.ReadAll(r.Body)
		if err := json.Unmarshal(b, &body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		i := slices.IndexFunc(body.Messages, func(m taskMessage) bool { return m.Role == "user" })
		if err != nil || i < 0 {
			http.Error(w, "nobody asks", http.StatusBadRequest)
			return
		}
		task := body.Messages[i].Content
		m.mu.Lock()
		n := m.seen[task]
		m.seen[task]++
		m.mu.Unlock()
		events := append([]string{chatFirst}, answer(task, n, body.Messages[i:])...)
		chatStream(1<<16, append(events, chatUses, "[DONE]")...)(w)
	}))
	t.Cleanup(m.Close)
	return m
}

func taskSays(text string) []string { return []string{chatText(text), chatStop("stop")} }

func taskCalls(id, name, args string) []string {
	return []string{chatCall(0, id, name, args), chatStop("tool_calls")}
}

// manyRow is one call of the long session. In args {NAME} stands for what an earlier row has kept under that name; want is a regular expression that
// fits the result, keep the name for its first group. unix: the row needs a Unix shell.
type manyRow struct {
	tool, args, want, keep string
	unix                   bool
}

// manyRows are the calls of the session, in order. Those of tools that are not there yet are passed over.
func manyRows() []manyRow {
	return []manyRow{
		{tool: "todo_write", args: `{"items":[{"text":"put the sums right","status":"in_progress"}]}`, want: `put the sums right`},
		{tool: "sys_info", args: `{"section":"tai"}`, want: `danger-full-access`},
		{tool: "dir_list", args: `{}`, want: `sales\.csv`},
		{tool: "file_find", args: `{"pattern":"*.sh"}`, want: `sum\.sh`},
		{tool: "text_search", args: `{"pattern":"TODO"}`, want: `README\.md:3: TODO`},
		{tool: "file_read", args: `{"path":"README.md"}`, want: `# Sums`},
		{tool: "file_read_hashed", args: `{"path":"README.md"}`, want: `(3#\w+)\tTODO`, keep: "anchor"},
		{tool: "file_edit_anchored", args: `{"path":"README.md","edits":[{"op":"replace","anchor":"{anchor}","text":"Done: the sum."}]}`, want: `README\.md: changed, lines \+1 -1`},
		{tool: "file_edit", args: `{"path":"sum.sh","old":"$1 - $2","new":"$1 + $2"}`, want: `sum\.sh: changed`},
		{tool: "file_write", args: `{"path":"notes/plan.md","content":"one\ntwo\n","mkdirs":true}`, want: `notes/plan\.md: created`},
		{tool: "file_patch", args: `{"patch":"--- notes/plan.md\n+++ notes/plan.md\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"}`, want: `notes/plan\.md: changed`},
		{tool: "file_move", args: `{"src":"notes/plan.md","dst":"notes/done.md"}`, want: `moved to notes/done\.md`},
		{tool: "file_delete", args: `{"path":"old.txt"}`, want: `deleted(?s:.*)change (\S+);`, keep: "change"},
		{tool: "file_undo", args: `{"change":"{change}"}`, want: `old\.txt`},
		{tool: "shell_run", args: `{"command":"sh sum.sh 2 3"}`, want: `(?m)^5$`, unix: true},
		{tool: "shell_inspect", args: `{"argv":["wc","-l","sales.csv"]}`, want: `4 sales\.csv`, unix: true},
		{tool: "proc_start", args: `{"command":"echo ready; cat","name":"echo"}`, want: `(p-\d+) \(echo\) running`, keep: "proc", unix: true},
		{tool: "proc_write", args: `{"id":"{proc}","text":"hello there\n"}`, want: `12 bytes sent`, unix: true},
		{tool: "proc_read", args: `{"id":"{proc}","cursor":0,"until":"hello there","wait_s":20}`, want: `ready(?s:.*)hello there`, unix: true},
		{tool: "agent_run", args: `{"task":"count the files","tools":["dir_list","file_find"],"max_steps":3}`, want: `(a-\d+) done(?s:.*)There are enough\.`, keep: "agent"},
		{tool: "agent_status", args: `{"id":"{agent}"}`, want: `There are enough\.`},
		{tool: "proc_list", args: `{}`, want: `p-1 \(echo\) running(?s:.*)a-1 exited`, unix: true},
		{tool: "proc_stop", args: `{"id":"{proc}"}`, want: `p-\d+ \(echo\) stopped`, unix: true},
		{tool: "git_status", args: `{}`, want: `sum\.sh`},
		{tool: "git_diff", args: `{"path":"sum.sh"}`, want: `\+echo \$\(\(\$1 \+ \$2\)\)`},
		{tool: "git_commit", args: `{"message":"Add instead of taking away","paths":["sum.sh","README.md","notes"]}`, want: `Add instead of taking away`},
		{tool: "git_log", args: `{"n":1}`, want: `Add instead of taking away`},
		{tool: "sqlite_query", args: `{"path":"shop.db","sql":"SELECT name FROM items WHERE price > ?","params":[2]}`, want: `tea`},
		{tool: "sqlite_exec", args: `{"path":"shop.db","sql":"UPDATE items SET price = price + 1 WHERE name = ?","params":["tea"]}`, want: `1`},
		{tool: "table_query", args: `{"sources":[{"name":"sales","path":"sales.csv"}],"sql":"SELECT sum(amount) AS total FROM sales"}`, want: `60`},
		{tool: "http_get", args: `{"url":"{web}/page","as":"markdown"}`, want: `Open from nine`},
		{tool: "http_request", args: `{"method":"POST","url":"{web}/order","body":"tea"}`, want: `ordered: tea`},
		{tool: "memory_save", args: `{"text":"The shop opens at nine.","key":"opening"}`, want: `opening`},
		{tool: "memory_search", args: `{"query":"shop opens"}`, want: `(?s)(m-\w+).*opens at nine|opens at nine`, keep: "memory"},
		{tool: "memory_delete", args: `{"id":"opening"}`, want: `opening|m-\w+`},
		{tool: "record_list", args: `{}`, want: `.`},
		{tool: "secret_set", args: `{"name":"SHOP_KEY","from":"env:SHOP_KEY"}`, want: `SHOP_KEY`},
		{tool: "secret_list", args: `{}`, want: `SHOP_KEY`},
		{tool: "secret_delete", args: `{"name":"SHOP_KEY"}`, want: `SHOP_KEY`},
		{tool: "profile_list", args: `{}`, want: `default`},
		{tool: "mcp_list", args: `{}`, want: `no MCP servers are stored`},
		{tool: "mcp_tools", args: `{}`, want: `no tools`},
		{tool: "tool_search", args: `{"query":"commit to git"}`, want: `git_commit`},
		{tool: "policy_check", args: `{"tool":"shell_run","args":{"command":"rm -rf /"}}`, want: `decision|: (allow|deny)`},
		{tool: "model_list", args: `{}`, want: `m-1`},
		{tool: "session_search", args: `{"query":"sums"}`, want: `(s-\w+)`, keep: "session"},
		{tool: "session_read", args: `{"id":"{session}","limit":1}`, want: `look at the sums`},
		{tool: "usage_report", args: `{}`, want: `m-1`},
		{tool: "audit_query", args: `{"tool":"git_commit"}`, want: `git_commit`},
		{tool: "audit_verify", args: `{}`, want: `(?i)good|intact|ok`},
	}
}

const (
	manyTask   = "put the sums right"
	manyBefore = "look at the sums" // what a session before it is about
	manyLeast  = 45                 // tools that the session uses at least
)

// manyRepo makes a small repository with a history, a database and a table.
func manyRepo(t *testing.T, r *cliRig) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		skipMissing(t, "no git here: %v", err)
	}
	for name, text := range map[string]string{
		"README.md": "# Sums\n\nTODO: the sum\n", "sum.sh": "echo $(($1 - $2))\n", "old.txt": "old\n", "sales.csv": "day,amount\nmon,10\ntue,20\nwed,30\n", ".gitignore": "*.db\n",
	} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.name", "n"}, {"config", "user.email", "n@example.invalid"}, {"add", "."}, {"commit", "-qm", "Begin"}} {
		cmd := exec.Command(git, args...)
		cmd.Dir, cmd.Env = r.dir, append(r.environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	db, err := sql.Open("sqlite", filepath.Join(r.dir, "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE items (name TEXT, price INTEGER); INSERT INTO items VALUES ('tea', 3), ('milk', 1)`); err != nil {
		t.Fatal(err)
	}
}

// manyWeb is the web server of the session.
func manyWeb(t *testing.T) *httptest.Server {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<html><title>Shop</title><body><h1>Shop</h1><p>Open from nine.</p></body></html>")
		case "/order":
			b, err := io.ReadAll(io.LimitReader(r.Body, 100))
			if err != nil || r.Method != http.MethodPost {
				http.Error(w, "no order", http.StatusBadRequest)
				return
			}
			fmt.Fprintf(w, "ordered: %s", b)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(web.Close)
	return web
}

// manyWalk answers the session's requests row by row and judges each result.
type manyWalk struct {
	t    *testing.T
	rows []manyRow
	kept map[string]string
	used map[string]bool
}

func (w *manyWalk) answer(task string, n int, msgs []taskMessage) []string {
	if task == manyBefore {
		return taskSays("They subtract.")
	}
	if task == "count the files" {
		if n == 0 {
			return taskCalls("s1", "file_find", `{"pattern":"*"}`)
		}
		return taskSays("There are enough.")
	}
	if n > 0 && n <= len(w.rows) {
		w.judge(w.rows[n-1], msgs[len(msgs)-1])
	}
	if n >= len(w.rows) {
		return taskSays("The sums are right.")
	}
	args := w.rows[n].args
	for name, value := range w.kept {
		args = strings.ReplaceAll(args, "{"+name+"}", value)
	}
	return taskCalls(fmt.Sprintf("c%d", n+1), w.rows[n].tool, args)
}

func (w *manyWalk) judge(row manyRow, result taskMessage) {
	found := regexp.MustCompile(row.want).FindStringSubmatch(result.Content)
	if found == nil || result.Role != "tool" {
		w.t.Errorf("%s %s: no %q in the %s\n%s", row.tool, row.args, row.want, result.Role, clip(result.Content, 1000))
		return
	}
	w.used[row.tool] = true
	if row.keep != "" {
		w.kept[row.keep] = found[1]
	}
}

// One session over a real repository, a database, a table and a web server uses most of the tools; what it did is in the files, in git and in the run log.
func TestTaskManyTools(t *testing.T) {
	r := newCLIRig(t)
	manyRepo(t, r)
	tools, err := (&app{root: r.dir}).nativeTools()
	if err != nil {
		t.Fatal(err)
	}
	w := &manyWalk{t: t, kept: map[string]string{"web": manyWeb(t).URL}, used: map[string]bool{}}
	for _, row := range manyRows() {
		if slices.ContainsFunc(tools, func(tl tool) bool { return tl.Name == row.tool }) && !(row.unix && runtime.GOOS == "windows") {
			w.rows = append(w.rows, row)
		}
	}
	model := newTaskModel(t, w.answer)
	r.env = []string{"TAI_BASE_URL=" + model.URL + "/v1", "TAI_MODEL=m-1", "SHOP_KEY=made-up-shop-key-1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1"}
	if out := r.tai(manyBefore).ok(); out != "They subtract.\n" {
		t.Errorf("the session before: %q", out)
	}
	session := r.tai("--yolo", "--max-steps", "200", manyTask)
	session.hides("made-up-shop-key-1")
	if out := session.ok(); out != "The sums are right.\n" {
		t.Errorf("stdout %q", out)
	}
	tried := map[string]bool{}
	for _, row := range w.rows {
		tried[row.tool] = true
	}
	if len(w.used) < len(tried) || runtime.GOOS != "windows" && len(w.used) < manyLeast {
		t.Errorf("%d of %d tools did what they should, at least %d have to", len(w.used), len(tried), manyLeast)
	}
	t.Logf("%d calls, %d of the %d native tools", len(w.rows), len(w.used), len(tools))
	for name, want := range map[string]string{"README.md": "# Sums\n\nDone: the sum.\n", "sum.sh": "echo $(($1 + $2))\n", "notes/done.md": "one\nthree\n", "old.txt": "old\n"} {
		if b, err := os.ReadFile(filepath.Join(r.dir, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	runs := cliJSON[struct{ Runs []auditRunInfo }](r.tai("audit", "list", "--json")).Runs
	verified := false
	for _, run := range runs {
		r.tai("audit", "verify", run.Run).ok()
		show := r.tai("audit", "show", run.Run, "--json").ok()
		verified = verified || strings.Contains(show, `"git_commit"`) && strings.Contains(show, `"agent_run"`)
	}
	if !verified {
		t.Errorf("no run log has the calls: %+v", runs)
	}
	list := cliJSON[struct{ Sessions []sessionJSON }](r.tai("session", "list", "--json")).Sessions
	if len(list) != 2 || list[0].Title != manyTask || list[1].Title != manyBefore {
		t.Errorf("sessions %+v", list)
	}
}
