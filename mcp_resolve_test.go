package main

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// hubFile is a file of a stand-in repository. Kind is the type that the contents API gives, "" for file; Answer, if any, is what reading it gives in place of its text.
type hubFile struct{ Text, Kind, Answer string }

// hubRepo is a repository: its files by ref and path.
type hubRepo struct {
	Branch            string // "" is main
	Private, Archived bool
	Refs              map[string]map[string]hubFile
}

// fakeHub stands in for GitHub's contents API.
type fakeHub struct {
	*httptest.Server
	mu       sync.Mutex
	repos    map[string]hubRepo
	renamed  map[string]string
	on       map[string]http.HandlerFunc // by path, in place of the honest answer
	requests []string                    // path, query and Authorization
}

func newFakeHub(t testing.TB) *fakeHub {
	t.Helper()
	h := &fakeHub{repos: map[string]hubRepo{}, renamed: map[string]string{}, on: map[string]http.HandlerFunc{}}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

// put adds a repository with these files on main: path, text, path, text.
func (h *fakeHub) put(name string, files ...string) {
	main := map[string]hubFile{}
	for i := 0; i+1 < len(files); i += 2 {
		main[files[i]] = hubFile{Text: files[i+1]}
	}
	h.repos[name] = hubRepo{Refs: map[string]map[string]hubFile{"main": main}}
}

func (h *fakeHub) seen() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

func hubSays(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	b, _ := json.Marshal(map[string]string{"message": message, "documentation_url": "https://docs.github.com/rest"})
	w.Write(b)
}

func (h *fakeHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.requests = append(h.requests, strings.TrimSpace(strings.TrimSuffix(r.URL.Path+"?"+r.URL.RawQuery, "?")+" "+r.Header.Get("Authorization")))
	h.mu.Unlock()
	if f := h.on[r.URL.Path]; f != nil {
		f(w, r)
		return
	}
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 5)
	if parts[0] == "repositories" && len(parts) == 3 {
		parts = []string{"repos", parts[1], parts[2]}
	}
	if len(parts) < 3 || parts[0] != "repos" || r.Method != http.MethodGet {
		hubSays(w, http.StatusTeapot, "wrong door")
		return
	}
	name := parts[1] + "/" + parts[2]
	if now := h.renamed[name]; now != "" {
		w.Header().Set("Location", h.URL+"/repositories/"+now)
		hubSays(w, http.StatusMovedPermanently, "Moved Permanently")
		return
	}
	repo, ok := h.repos[name]
	if !ok || repo.Private && r.Header.Get("Authorization") != "Bearer ghp_of-the-person" {
		hubSays(w, http.StatusNotFound, "Not Found")
		return
	}
	branch := repo.Branch
	if branch == "" {
		branch = "main"
	}
	if len(parts) == 3 {
		fmt.Fprintf(w, `{"id":1,"full_name":%q,"default_branch":%q,"private":%t,"archived":%t}`, name, branch, repo.Private, repo.Archived)
		return
	}
	ref := r.URL.Query().Get("ref")
	if ref == "" {
		ref = branch
	}
	files, ok := repo.Refs[ref]
	if !ok {
		hubSays(w, http.StatusNotFound, "No commit found for the ref "+ref)
		return
	}
	at := ""
	if len(parts) == 5 {
		at = parts[4]
	}
	hubContents(w, files, at)
}

// hubContents answers for one path: a file with its content in lines of base64, or a folder.
func hubContents(w http.ResponseWriter, files map[string]hubFile, at string) {
	if f, ok := files[at]; ok {
		if f.Answer != "" {
			fmt.Fprint(w, f.Answer)
			return
		}
		code := base64.StdEncoding.EncodeToString([]byte(f.Text))
		lines := ""
		for part := range slices.Chunk([]byte(code), 60) {
			lines += string(part) + "\n"
		}
		b, _ := json.Marshal(map[string]any{"type": "file", "name": path.Base(at), "path": at, "size": len(f.Text), "encoding": "base64", "content": lines})
		w.Write(b)
		return
	}
	kinds := map[string]string{}
	for p, f := range files {
		rest, ok := strings.CutPrefix(p, at+"/")
		if at == "" {
			rest, ok = p, true
		}
		if name, _, deeper := strings.Cut(rest, "/"); ok && deeper {
			kinds[name] = "dir"
		} else if ok {
			if kinds[name] = f.Kind; f.Kind == "" {
				kinds[name] = "file"
			}
		}
	}
	if len(kinds) == 0 {
		hubSays(w, http.StatusNotFound, "Not Found")
		return
	}
	items := []map[string]any{}
	for name, kind := range kinds {
		items = append(items, map[string]any{"type": kind, "name": name, "path": path.Join(at, name), "size": 1})
	}
	b, _ := json.Marshal(items)
	w.Write(b)
}

// resolveRig is a resolver over the stand-in. Answers are those of the sub-agent, one a call; briefs is what it was told.
type resolveRig struct {
	*resolver
	hub    *fakeHub
	env    map[string]string
	vault  map[string]string
	asked  *bridgeAsker
	log    *auditLog
	briefs []string
	answer string
	fault  error
}

func newResolveRig(t *testing.T, mode approvalMode) *resolveRig {
	t.Helper()
	r := &resolveRig{hub: newFakeHub(t), vault: map[string]string{}, asked: &bridgeAsker{answer: "y"}, fault: errNoModel}
	r.env = map[string]string{"TAI_GITHUB_API": r.hub.URL}
	dir := t.TempDir()
	r.log = newAuditLog(auditConfig{Dir: filepath.Join(dir, "runs"), Origin: "test", Now: time.Now})
	web := newWebFetcher(webFetcherConfig{Env: func(string) string { return "" }})
	r.resolver = newResolver(resolverConfig{
		Web: web, Env: func(n string) (string, bool) { v, ok := r.env[n]; return v, ok }, Policy: newPolicy(policyConfig{Mode: mode, Root: dir, Prompter: r.asked}), Audit: r.log,
		Now: func() time.Time { return time.Unix(1_800_000_000, 0) }, GOOS: "linux",
		Secret: func(_ context.Context, n string) (secret, error) {
			if v := r.vault[n]; v != "" {
				return secret(v), nil
			}
			return "", errNotFound
		},
		Fork: func(_ context.Context, _ toolCall, brief string, steps int) (string, error) {
			if r.briefs = append(r.briefs, brief); steps != mcpResolverSteps {
				t.Errorf("%d steps", steps)
			}
			return r.answer, r.fault
		},
	})
	t.Cleanup(func() {
		web.close()
		if err := r.log.close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// of resolves an address.
func (r *resolveRig) of(t *testing.T, address, name string) (resolved, error) {
	t.Helper()
	link, ok, err := r.link(address, nil)
	if !ok || err != nil {
		t.Fatalf("link %q: %v, %v", address, ok, err)
	}
	return r.resolve(t.Context(), resolveOrder{Link: link, Call: toolCall{Person: true}, Name: name, Yes: "--yes"})
}

// fails wants a failure with these words, and gives its hint.
func (r *resolveRig) fails(t *testing.T, address string, words ...string) string {
	t.Helper()
	res, err := r.of(t, address, "")
	if err == nil {
		t.Fatalf("%s gave %+v", address, res.Servers)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: no %q in: %v", address, w, err)
		}
	}
	if h, ok := errors.AsType[*hintedError](err); ok {
		return h.Hint
	}
	return ""
}

const (
	hubNPX    = `{"mcpServers":{"weather":{"command":"npx","args":["-y","weather-mcp"],"env":{"WEATHER_KEY":"<YOUR_KEY>"}}}}`
	hubReadme = "# Weather\n\nForecasts for your agent.\n\n"
)

// The shapes that repositories of servers have. Each is one file tree and the entry that it gives.
func TestResolveShapes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		at    string   // behind the repository's address
		files []string // path, text
		want  string   // name: what it runs or dials
		notes []string // in notes and warnings
		doubt bool
	}{
		{"mcp.json", "", []string{"mcp.json", hubNPX, "README.md", hubReadme}, "weather: npx -y weather-mcp", []string{"mcp.json of github:acme/weather-mcp", "WEATHER_KEY holds only an example", "--env WEATHER_KEY='${WEATHER_KEY}'"}, false},
		{"the order of the files", "", []string{"package.json", `{"name":"weather-mcp","bin":"x.js"}`, ".mcp.json", hubNPX, "mcp.json", `{"mcpServers":{"weather":{"command":"uvx","args":["weather-mcp"]}}}`}, "weather: uvx weather-mcp", nil, false},
		{".mcp.json of a developer, then package.json", "", []string{".mcp.json", `{"mcpServers":{"browser":{"command":"npx","args":["-y","@other/browser-mcp"]},"db":{"command":"uvx","args":["sqlite-tool"]}}}`,
			"package.json", `{"name":"@acme/weather-mcp","version":"1.0.0","bin":{"weather-mcp":"dist/index.js"},"dependencies":{"@modelcontextprotocol/sdk":"1"}}`}, "weather-mcp: npx -y @acme/weather-mcp", []string{"package.json of github:"}, false},
		{".mcp.json alone with others' servers", "", []string{".mcp.json", `{"mcpServers":{"browser":{"command":"npx","args":["-y","@other/browser-mcp"]},"db":{"command":"uvx","args":["sqlite-tool"]}}}`},
			"browser: npx -y @other/browser-mcp", []string{"also offered there, and not taken: uvx sqlite-tool"}, true},
		{".mcp.json that needs a copy, then server.json", "", []string{".mcp.json", `{"mcpServers":{"weather":{"command":"node","args":["./dist/index.js"]}}}`,
			"server.json", `{"$schema":"https://static.modelcontextprotocol.io/schemas/2025-07-09/server.schema.json","name":"io.github.acme/weather","packages":[{"registryType":"npm","identifier":"@acme/weather-mcp","version":"1.2.0","transport":{"type":"stdio"},"environmentVariables":[{"name":"WEATHER_KEY","isRequired":true}]}]}`},
			"weather: npx -y @acme/weather-mcp@1.2.0 WEATHER_KEY=${WEATHER_KEY}", []string{"server.json of github:"}, false},
		{"server.json with a remote", "", []string{"server.json", `{"name":"com.acme/forecasts","remotes":[{"type":"streamable-http","url":"https://mcp.acme.example.net/mcp"}]}`}, "forecasts: https://mcp.acme.example.net/mcp", nil, false},
		{"package.json and a README that says more", "", []string{"package.json", `{"name":"weather-mcp","bin":"cli.js","keywords":["mcp"]}`, "README.md", hubReadme + "```json\n" + hubNPX + "\n```\n"},
			"weather-mcp: npx -y weather-mcp", []string{"README.md, line 6, starts it with more", "--env WEATHER_KEY='${WEATHER_KEY}'"}, false},
		{"package.json without a word of MCP", "", []string{"package.json", `{"name":"weather-cli","bin":"cli.js"}`}, "weather-cli: npx -y weather-cli", []string{"nothing in it says that it is an MCP server"}, false},
		{"private package.json, README with uvx", "", []string{"package.json", `{"name":"x","private":true,"bin":"a.js"}`, "README.md", hubReadme + "Run it:\n\n```bash\n$ uvx weather-mcp-server --units metric\n```\n"},
			"weather-mcp-server: uvx weather-mcp-server --units metric", []string{"README.md, line 8,"}, false},
		{"README with JSON, local ways first", "", []string{"README.md", hubReadme + "```json\n{\"mcpServers\":{\"weather\":{\"command\":\"node\",\"args\":[\"/path/to/weather/build/index.js\"]}}}\n```\nor\n```json\n" + hubNPX + "\n```\n"},
			"weather: npx -y weather-mcp", nil, false},
		{"README with a remote and npx", "", []string{"README.md", hubReadme + "```json\n{\"mcpServers\":{\"weather\":{\"url\":\"https://mcp.weather.example.net/mcp\",\"headers\":{\"X-Key\":\"YOUR_API_KEY\"}}}}\n```\n```json\n" + hubNPX + "\n```\n"},
			"weather: https://mcp.weather.example.net/mcp", []string{"the header X-Key holds only an example", "also offered there, and not taken: npx -y weather-mcp"}, false},
		{"README with docker", "", []string{"readme.md", hubReadme + "```sh\ndocker build -t weather .\ndocker run --rm -p 80:80 ghcr.io/acme/weather\ndocker run -i --rm \\\n  -e WEATHER_KEY ghcr.io/acme/weather\n```\n"},
			"weather: docker run -i --rm -e WEATHER_KEY ghcr.io/acme/weather", []string{"readme.md, line 6,"}, false},
		{"README with other clients' commands", "", []string{"README.md", hubReadme + "```sh\nnpx -y @smithery/cli install @acme/weather-mcp --client x\nnpx @modelcontextprotocol/inspector npx weather-mcp\nclaude mcp add weather -e WEATHER_KEY=k -- npx -y weather-mcp@latest\n```\n"},
			"weather-mcp: npx -y weather-mcp@latest WEATHER_KEY=k", nil, false},
		{"README with an address for other clients", "", []string{"README.md", hubReadme + "```sh\nclaude mcp add --transport http weather https://weather.example.net/mcp\n```\n"}, "weather.example.net: https://weather.example.net/mcp", nil, false},
		{"README with an installed program first", "", []string{"README.md", hubReadme + "```json\n{\"mcpServers\":{\"weather\":{\"command\":\"python\",\"args\":[\"-m\",\"weather_mcp\"]}}}\n```\n```json\n{\"mcpServers\":{\"weather\":{\"command\":\"uvx\",\"args\":[\"weather-mcp\"]}}}\n```\n"},
			"weather: uvx weather-mcp", []string{"also offered there, and not taken: python -m weather_mcp"}, false},
		{"README with TOML", "", []string{"README.md", hubReadme + "```toml\n[mcp_servers.weather]\ncommand = \"npx\"\nargs = [\"-y\", \"weather-mcp\"]\n```\n"}, "weather: npx -y weather-mcp", nil, false},
		{"README with a code span", "", []string{"README", "npx is needed to run this\n\n`npx -y weather-mcp`\n"}, "weather-mcp: npx -y weather-mcp", []string{"README, line 3,"}, false},
		{"a folder of many servers", "/tree/main/src/tides", []string{"package.json", `{"name":"all","private":true,"workspaces":["src/*"]}`, "README.md", hubReadme,
			"src/tides/package.json", `{"name":"@acme/server-tides","bin":{"server-tides":"i.js"},"description":"MCP server"}`, "src/tides/README.md", "x"}, "server-tides: npx -y @acme/server-tides", []string{"src/tides/package.json of"}, false},
		{"a folder without, then the topmost", "/tree/main/docs/", []string{"mcp.json", hubNPX, "docs/a.md", "x"}, "weather: npx -y weather-mcp", nil, false},
		{"a folder that is gone", "/tree/main/nowhere", []string{"mcp.json", hubNPX}, "weather: npx -y weather-mcp", []string{"there is no folder nowhere on main"}, false},
		{"a file", "/blob/main/examples/client.json?plain=1#L3", []string{"mcp.json", `{"mcpServers":{"other":{"command":"uvx","args":["x"]}}}`, "examples/client.json", hubNPX}, "weather: npx -y weather-mcp", []string{"examples/client.json of"}, false},
		{"a page of the documentation", "/blob/main/docs/install.md", []string{"docs/install.md", "```json\n" + hubNPX + "\n```"}, "weather: npx -y weather-mcp", []string{"docs/install.md, line 2,"}, false},
		{"a branch with slashes", "/tree/feature/new/sub", []string{"mcp.json", "{}", "@feature/new:sub/mcp.json", hubNPX}, "weather: npx -y weather-mcp", []string{"sub/mcp.json of github:acme/weather-mcp (branch feature/new)"}, false},
		{"the reader's own switches", "", []string{"mcp.json", `{"mcpServers":{"weather":{"command":"npx","args":["-y","weather-mcp"],"cwd":"/srv/x","disabled":true}}}`}, "weather: npx -y weather-mcp", []string{"cwd is one of the repository"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newResolveRig(t, modeDanger)
			r.hub.put("acme/weather-mcp")
			for i := 0; i+1 < len(tc.files); i += 2 {
				ref, file := "main", tc.files[i]
				if at, rest, ok := strings.Cut(strings.TrimPrefix(file, "@"), ":"); ok {
					ref, file = at, rest
				}
				refs := r.hub.repos["acme/weather-mcp"].Refs
				if refs[ref] == nil {
					refs[ref] = map[string]hubFile{}
				}
				refs[ref][file] = hubFile{Text: tc.files[i+1]}
			}
			res, err := r.of(t, "https://github.com/acme/weather-mcp"+tc.at, "")
			if err != nil {
				t.Fatal(err)
			}
			e := res.Servers[0]
			got := e.Name + ": " + entryText(&e)
			for k, v := range e.Env {
				if v != "<YOUR_KEY>" {
					got += " " + k + "=" + v
				}
			}
			if got != tc.want || len(res.Servers) != 1 || e.Source != "github:acme/weather-mcp" || e.Enabled != nil || e.Cwd != "" {
				t.Errorf("got %q, want %q; %+v", got, tc.want, res.Servers)
			}
			said := strings.Join(slices.Concat(res.Notes, res.Warnings), "\n")
			for _, n := range tc.notes {
				if !strings.Contains(said, n) {
					t.Errorf("no %q in:\n%s", n, said)
				}
			}
			if (res.Doubt != "") != tc.doubt || len(r.briefs) != 0 {
				t.Errorf("doubt %q, %d briefs", res.Doubt, len(r.briefs))
			}
		})
	}
}

// What a person may paste for a repository, and what only looks like it.
func TestResolveLinks(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ word, want string }{
		{"https://github.com/o/r", "o/r"},
		{"https://github.com/o/r/", "o/r"},
		{"http://www.GitHub.com/o/r.git", "o/r"},
		{"github.com/o/r", "o/r"},
		{"<https://github.com/o/r>", "o/r"},
		{"git@github.com:o/r.git", "o/r"},
		{"git@github.com:22/r.git", "22/r"},
		{"ssh://git@github.com:22/o/r.git", "o/r"},
		{"ssh://git@github.com/o/r", "o/r"},
		{"git+https://github.com/o/r.git", "o/r"},
		{"git://github.com/o/r.git", "o/r"},
		{"https://github.com/o/r?tab=readme-ov-file#readme", "o/r"},
		{"https://github.com/o/r/issues/3", "o/r"},
		{"https://github.com/o/r/tree/main", "o/r main"},
		{"https://github.com/o/r/tree/a/b%20c/", "o/r a,b c"},
		{"https://github.com/o/r/blob/main/x/mcp.json", "o/r main,x,mcp.json file"},
		{"https://github.com/o_x/r.js-1", "o_x/r.js-1"},
		{"https://ghe.example.com/o/r", "o/r"},
		{"https://ghe.example.com:8443/o/r", "none"},
		{"https://ghe.example.com/mcp", "none"},
		{"https://github.com", "error"},
		{"https://github.com/o", "error"},
		{"https://github.com/o/..", "error"},
		{"https://github.com/o/%2e%2e", "error"},
		{"https://github.com/-o/r", "error"},
		{"https://github.com/o/r%00", "error"},
		{"https://github.com/o/r/tree/main/..%2f..%2fx", "error"},
		{"https://github.com/o/r/tree/main/../../x", "error"},
		{"https://github.com/o/r/tree/main/%2e%2e/x", "error"},
		{"https://github.com/o/r/tree/./x", "error"},
		{"https://github.com/o/%zz", "error"},
		{"https://github.com.evil.example/o/r", "none"},
		{"https://gist.github.com/o/r", "none"},
		{"https://user:pass@github.com/o/r", "none"},
		{"ftp://github.com/o/r", "none"},
		{"https://mcp.example.com/github.com/o/r", "none"},
		{"read https://github.com/o/r", "none"},
		{"", "none"},
	} {
		l, ok, err := parseGitHubLink(tc.word, githubWeb, "ghe.example.com")
		got := l.full()
		if len(l.Place) > 0 {
			got += " " + strings.Join(l.Place, ",")
		}
		if l.File {
			got += " file"
		}
		if err != nil {
			got = "error"
		} else if !ok {
			got = "none"
		}
		if got != tc.want {
			t.Errorf("%q gave %q, want %q (%v)", tc.word, got, tc.want, err)
		}
	}
	r := newResolveRig(t, modeDanger)
	if _, ok, _ := r.link("github.com/o/r", []serverEntry{{Name: "github.com/o/r"}}); ok {
		t.Error("a stored name is taken for an address")
	}
	r.env = map[string]string{"GITHUB_API_URL": "https://ghe.example.com/api/v3"}
	if l, ok, err := r.link("https://ghe.example.com/o/r", nil); !ok || err != nil || l.full() != "o/r" {
		t.Errorf("enterprise host: %+v %v %v", l, ok, err)
	}
	r.env["TAI_GITHUB_API"] = "ftp://x"
	if _, err := r.of(t, "github.com/o/r", ""); err == nil || !strings.Contains(err.Error(), "TAI_GITHUB_API must start with http") {
		t.Errorf("faulty setting: %v", err)
	}
	for base, want := range map[string]string{"": "github.com", "https://api.github.com/": "github.com", "https://api.sub.ghe.example": "sub.ghe.example", "http://10.1.1.1:8080/api/v3/": "10.1.1.1:8080"} {
		b, err := newGitHubBase(func(string) (string, bool) { return base, true })
		if err != nil || b.web() != want || strings.HasSuffix(b.url.String(), "/") {
			t.Errorf("%q: %q, %v", base, b.web(), err)
		}
	}
}

// hubStatus answers with a status, headers and a message.
func hubStatus(status int, message string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		hubSays(w, status, message)
	}
}

// Whatever keeps the API from being read is told with its cause and a way out, and no model is asked to get round it.
func TestResolveRefusals(t *testing.T) {
	t.Parallel()
	const in20m = "1800001200" // 20 minutes from now
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other host was called: %s %q", r.URL, r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	for _, tc := range []struct {
		name   string
		answer http.HandlerFunc // for /repos/o/r; nil is the honest one
		token  string
		words  []string
		hint   string
	}{
		{"missing", nil, "", []string{"github:o/r: read the repository: it is not there, or it is private"}, "set GITHUB_TOKEN, or store it with tai secret set GITHUB_TOKEN"},
		{"missing or private, with a token", nil, "ghp_x", []string{"it is not there, or it is private"}, "that the token of GITHUB_TOKEN may read"},
		{"rate limit", hubStatus(403, "API rate limit exceeded for 192.0.2.1.", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", in20m), "", []string{"rate limit is used up", "at 2027-01-15T08:20:00Z (in 20m0s)"}, "60 requests an hour, with one 5000"},
		{"rate limit, with a token", hubStatus(429, "slow", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", in20m), "ghp_x", []string{"rate limit is used up", "(in 20m0s)"}, "try again then"},
		{"secondary limit", hubStatus(403, "You have exceeded a secondary rate limit", "Retry-After", "60"), "", []string{"secondary rate limit", "at 2027-01-15T08:01:00Z (in 1m0s)"}, "set GITHUB_TOKEN"},
		{"secondary limit without a time", hubStatus(429, "You have exceeded a secondary rate limit"), "", []string{"in a few minutes"}, "set GITHUB_TOKEN"},
		{"bad token", hubStatus(401, "Bad credentials"), "ghp_x", []string{"refuses the token of GITHUB_TOKEN: Bad credentials"}, "a public repository needs none"},
		{"organisation's login", hubStatus(403, "Resource protected by organization SAML enforcement.", "X-RateLimit-Remaining", "50"), "ghp_x", []string{"refuses it (403): Resource protected"}, "the token of GITHUB_TOKEN"},
		{"blocked", hubStatus(451, "Repository access blocked"), "", []string{"answered 451: Repository access blocked"}, ""},
		{"down", hubStatus(503, "No server is currently available\u001b[2J"), "", []string{"has a fault of its own (503)", `\u001b[2J`}, "try again later"},
		{"no API", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>sign in") }, "", []string{"read the repository: "}, "TAI_GITHUB_API"},
		{"another API", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"full_name":"../x"}`) }, "", []string{"without its name"}, "TAI_GITHUB_API"},
		{"redirect to another host", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL+"/steal", 301) }, "ghp_x", []string{"redirect is not followed", "another host"}, ""},
		{"endless redirects", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, 301) }, "", []string{"more than 10 redirects"}, ""},
		{"huge", func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, githubBodyMax+1)) }, "", []string{"more than 4194304 bytes"}, ""},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"full_na`)
		}, "", []string{"unexpected EOF"}, "is the network there?"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newResolveRig(t, modeDanger)
			if tc.answer != nil {
				r.hub.on["/repos/o/r"] = tc.answer
			}
			if tc.token != "" {
				r.env["GITHUB_TOKEN"] = tc.token
			}
			if hint := r.fails(t, "github.com/o/r", tc.words...); !strings.Contains(hint, tc.hint) {
				t.Errorf("hint %q, want %q", hint, tc.hint)
			}
			if len(r.briefs) != 0 {
				t.Error("an agent was started")
			}
		})
	}
	r := newResolveRig(t, modeDanger)
	r.hub.Close()
	if hint := r.fails(t, "github.com/o/r", "read the repository", "refused"); !strings.Contains(hint, "is the network there?") {
		t.Errorf("hint %q", hint)
	}
}

// An API that does not answer is given up in time, and one that is interrupted at once.
func TestResolveSlow(t *testing.T) {
	t.Parallel()
	r := newResolveRig(t, modeDanger)
	began, free := make(chan struct{}, 9), make(chan struct{})
	t.Cleanup(func() { close(free) })
	r.hub.on["/repos/o/r"] = func(http.ResponseWriter, *http.Request) {
		began <- struct{}{}
		<-free
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	if _, err := r.resolve(ctx, resolveOrder{Link: githubLink{Owner: "o", Name: "r"}, Call: toolCall{Person: true}}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, err := r.resolve(ctx, resolveOrder{Link: githubLink{Owner: "o", Name: "r"}, Call: toolCall{Person: true}}); err == nil || !strings.Contains(err.Error(), "did not answer in time") {
		t.Errorf("late: %v", err)
	}
}

// A file that gives no text is told and passed over; the next one is read.
func TestResolveOddFiles(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		file hubFile
		want string
	}{
		{"large", hubFile{Answer: fmt.Sprintf(`{"type":"file","size":%d,"encoding":"none","content":""}`, githubFileMax+1)}, "it has 1048577 bytes, at most 1048576"},
		{"binary", hubFile{Text: "\x00\x01\xff"}, "it is binary, or no UTF-8"},
		{"damaged", hubFile{Answer: `{"type":"file","size":9,"encoding":"base64","content":"eyJh\nIjox*"}`}, "damaged or cut off"},
		{"cut off", hubFile{Answer: `{"type":"file","size":9,"encoding":"base64","content":"eyJh\n"}`}, "cut off (3 of 9 bytes)"},
		{"another encoding", hubFile{Answer: `{"type":"file","size":9,"encoding":"utf-7","content":"x"}`}, "its content comes as utf-7"},
		{"link to nowhere", hubFile{Kind: "symlink", Answer: `{"type":"symlink","target":"../../etc/passwd","size":9}`}, "it is a link to what is no file"},
		{"submodule", hubFile{Answer: `{"type":"submodule","submodule_git_url":"git://x","size":0}`}, "another repository (a submodule)"},
		{"folder", hubFile{Answer: `[{"type":"file","name":"x"}]`}, "it is a folder"},
		{"no entry", hubFile{Text: `{"scripts":{}}`}, "mcp.json: "},
		{"broken", hubFile{Text: `{"mcpServers":`}, "JSON is not valid"},
		{"local", hubFile{Text: `{"mcpServers":{"x":{"command":"./run.sh"}}}`}, "./run.sh needs a copy of the repository"},
		{"localhost", hubFile{Text: `{"mcpServers":{"x":{"url":"http://localhost:3000/mcp"}}}`}, "already runs here"},
		{"example", hubFile{Text: `{"mcpServers":{"x":{"url":"https://your-server.example.com/mcp"}}}`}, "only an example of an address"},
		{"built image", hubFile{Text: `{"mcpServers":{"x":{"command":"docker","args":["run","-i","weather"]}}}`}, "an image that has to be built first"},
		{"image without -i", hubFile{Text: `{"mcpServers":{"x":{"command":"docker","args":["run","acme/weather"]}}}`}, "without -i"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newResolveRig(t, modeDanger)
			r.hub.put("o/r", "README.md", "# r\n")
			r.hub.repos["o/r"].Refs["main"]["mcp.json"] = tc.file
			if hint := r.fails(t, "github.com/o/r", "Pass 1, its files: mcp.json: ", tc.want, "README.md: it shows no configuration", "Pass 2, the sub-agent: it is not possible without a model"); !strings.Contains(hint, "tai model set") {
				t.Errorf("hint %q", hint)
			}
			r.hub.repos["o/r"].Refs["main"]["package.json"] = hubFile{Text: `{"name":"r-mcp","bin":"x.js"}`}
			if res, err := r.of(t, "github.com/o/r", ""); err != nil || entryText(&res.Servers[0]) != "npx -y r-mcp" {
				t.Errorf("%+v, %v", res.Servers, err)
			}
		})
	}
	r := newResolveRig(t, modeDanger)
	r.hub.put("o/empty")
	r.fails(t, "github.com/o/empty", "the repository is empty")
	r.hub.put("o/none", "main.c", "int main;")
	r.fails(t, "github.com/o/none", "none of mcp.json, .mcp.json, server.json, package.json and README is there")
	if hint := r.fails(t, "github.com/o/none/tree/no/such", "no branch, tag or commit"); !strings.Contains(hint, "leave out") {
		t.Errorf("hint %q", hint)
	}
	// A server that is down in the middle is no empty repository.
	r.hub.put("o/half", "mcp.json", "{}")
	r.hub.on["/repos/o/half/contents/mcp.json"] = hubStatus(502, "")
	r.fails(t, "github.com/o/half", "read mcp.json: ", "(502)")
}

// The token goes to the API alone, from where the person keeps it; a renamed repository is followed on the API's own origin.
func TestResolveToken(t *testing.T) {
	t.Parallel()
	r := newResolveRig(t, modeDanger)
	r.hub.put("acme/weather", "mcp.json", hubNPX)
	repo := r.hub.repos["acme/weather"]
	repo.Private, repo.Archived = true, true
	r.hub.repos["acme/weather"] = repo
	r.hub.renamed["old/name"] = "acme/weather"
	r.vault["GH_TOKEN"] = "ghp_of-the-person"
	res, err := r.of(t, "github.com/old/name", "")
	if err != nil || res.Servers[0].Source != "github:acme/weather" {
		t.Fatalf("%+v, %v", res, err)
	}
	if said := strings.Join(res.Notes, "\n"); !strings.Contains(said, "old/name has been renamed to acme/weather") || !strings.Contains(said, "is archived") {
		t.Errorf("notes: %s", said)
	}
	want := []string{"/repos/old/name Bearer ghp_of-the-person", "/repositories/acme/weather Bearer ghp_of-the-person", "/repos/acme/weather/contents Bearer ghp_of-the-person", "/repos/acme/weather/contents/mcp.json Bearer ghp_of-the-person"}
	if got := r.hub.seen(); !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
	r.env["GITHUB_TOKEN"] = "ghp_other" // the environment comes first
	r.fails(t, "github.com/acme/weather", "it is private")
	r.env["TAI_GITHUB_API"] = "http://ghe.example/api/v3"
	r.fails(t, "github.com/acme/weather", "the token of GITHUB_TOKEN would cross the network unencrypted")
	r.cfg.Secret = func(context.Context, string) (secret, error) { return "", errSealBroken }
	delete(r.env, "GITHUB_TOKEN")
	r.fails(t, "github.com/acme/weather", "read the token")
}

// Without a setting it is GitHub's own API, over TLS and at a public address alone.
func TestResolvePublicAPI(t *testing.T) {
	t.Parallel()
	cert, pool := httpTestCert(t, "api.github.com", time.Now().Add(time.Hour))
	r := newResolveRig(t, modeDanger)
	secure := httptest.NewUnstartedServer(r.hub)
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	secure.StartTLS()
	t.Cleanup(secure.Close)
	addr := netip.MustParseAddr("140.82.112.6")
	var dialer net.Dialer
	web := newWebFetcher(webFetcherConfig{Env: func(string) string { return "" }, RootCAs: pool,
		Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			if host != "api.github.com" {
				t.Errorf("looked up %s", host)
			}
			return []netip.Addr{addr}, nil
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, secure.Listener.Addr().String())
		}})
	t.Cleanup(web.close)
	r.cfg.Web, r.env = web, map[string]string{"GITHUB_API_URL": "https://api.github.com/", "GITHUB_TOKEN": "ghp_of-the-person"}
	r.fault, r.answer = nil, fenced(`{"command":"uvx","args":["weather-mcp"]}`)
	r.hub.put("acme/weather", "README.md", "# Weather\n")
	if _, err := r.of(t, "github.com/acme/weather", ""); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.briefs[0], "http_get at https://raw.githubusercontent.com/acme/weather/main/PATH") {
		t.Errorf("brief: %s", r.briefs[0])
	}
	if seen := r.hub.seen(); len(seen) != 3 || !strings.HasSuffix(seen[0], " Bearer ghp_of-the-person") {
		t.Errorf("requests %q", seen)
	}
	addr = netip.MustParseAddr("10.0.0.5")
	r.cfg.Web.close()
	r.fails(t, "github.com/acme/weather", "api.github.com stands for 10.0.0.5, which is a private")
	if len(r.hub.seen()) != 3 {
		t.Error("a private address was called")
	}
}

// What carries a repository's name or its owner's, and what only looks like a server.
func TestResolveOwns(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		repo, text string
		want       bool
	}{
		{"acme/weather-mcp", "npx -y @other/mcp-server-weather", true},
		{"acme/weather-mcp", "npx -y @acme/tides", true},
		{"acme/weather-mcp", "uvx acme.tides-mcp-server@latest", true},
		{"acme/weather-mcp", "uvx --from git+https://github.com/acme/x tides", false}, // the program is another one
		{"acme/weather-mcp", "docker run -i ghcr.io/acme/tides", true},
		{"acme/weather-mcp", "https://mcp.weather.example.net/mcp", true},
		{"acme/weather-forecast-mcp", "npx -y weather-mcp", true},
		{"acme/weather-mcp", "npx -y evil-mcp", false},
		{"acme/mcp", "npx -y evil-mcp", false},
		{"acme/mcp-server", "npx -y evil-mcp-server", false},
		{"acme/mcp-server", "npx -y mcp-server", true},
		{"ac/mcp", "npx -y trac-mcp", false},
		{"acme/weather-mcp", "https://mcp.example.net/weather", false},
	} {
		owner, name, _ := strings.Cut(tc.repo, "/")
		list, err := configEntries(tc.text, "", "linux")
		if err != nil {
			t.Fatal(err)
		}
		if got := (repoWords{Owner: owner, Names: []string{name}}).owns(&list[0].serverEntry); got != tc.want {
			t.Errorf("%s owns %s: %t", tc.repo, tc.text, got)
		}
	}
}
