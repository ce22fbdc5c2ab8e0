package main

import (
	"bytes"
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
)

// These tests hold mcp.md to the program in both directions: what the program has must stand there, and what stands there the
// program must have, with its value. Both sides are read, neither from a list kept here.

// docPage is mcp.md by headings.
type docPage map[string][]string

func readDoc(t *testing.T) docPage {
	t.Helper()
	b, err := os.ReadFile("mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	page, heading, fenced := docPage{}, "", false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		fenced = fenced != strings.HasPrefix(line, "```")
		if !fenced && strings.HasPrefix(line, "#") {
			heading = strings.TrimLeft(line, "# ")
			continue
		}
		page[heading] = append(page[heading], line)
	}
	return page
}

// table gives the rows of the table under a heading whose first column is called first. Marks of code are taken off cells that
// are one code span.
func (p docPage) table(t *testing.T, heading, first string) [][]string {
	t.Helper()
	var rows [][]string
	inside := false
	for _, line := range p[heading] {
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		cells := docCells(line)
		if inside && !strings.HasPrefix(line, "|---") {
			rows = append(rows, cells)
		}
		inside = inside || cells[0] == first
	}
	if len(rows) == 0 {
		t.Fatalf("mcp.md: no table %q under %q", first, heading)
	}
	return rows
}

func docCells(line string) []string {
	line = strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "\x00")
	cells := strings.Split(line, "|")
	for i, c := range cells {
		c = strings.ReplaceAll(strings.TrimSpace(c), "\x00", "|")
		if inner := strings.Trim(c, "`"); len(c) > 2 && c == "`"+inner+"`" && !strings.Contains(inner, "`") {
			c = inner
		}
		cells[i] = c
	}
	return cells
}

// column maps each row's first cell to the given ones, joined. A row must not stand twice, and no cell may be empty but those.
func docColumn(t *testing.T, rows [][]string, columns ...int) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, row := range rows {
		var parts []string
		for _, c := range columns {
			if c >= len(row) {
				t.Fatalf("mcp.md: row %q has %d cells", row[0], len(row))
			}
			parts = append(parts, row[c])
		}
		if _, twice := out[row[0]]; twice {
			t.Errorf("mcp.md: row %q stands twice", row[0])
		}
		if row[len(row)-1] == "" {
			t.Errorf("mcp.md: row %q says nothing in its last cell", row[0])
		}
		out[row[0]] = strings.Join(parts, " | ")
	}
	return out
}

// docSame compares a table with the program, both ways.
func docSame(t *testing.T, what string, doc, code map[string]string) {
	t.Helper()
	if len(code) == 0 {
		t.Fatalf("%s: the program has none, so the test looks in the wrong place", what)
	}
	for _, k := range slices.Sorted(maps.Keys(code)) {
		if got, ok := doc[k]; !ok {
			t.Errorf("%s %q (%s) is missing in mcp.md", what, k, code[k])
		} else if got != code[k] {
			t.Errorf("%s %q: mcp.md says %q, the program has %q", what, k, got, code[k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(doc)) {
		if _, ok := code[k]; !ok {
			t.Errorf("%s %q stands in mcp.md, the program has none", what, k)
		}
	}
}

// docConst is one constant of the program. Block is the comment over its const block, Remark the one behind it.
type docConst struct {
	Name, File, Block, Remark string
	Value                     constant.Value
	Time                      bool // a time.Duration
}

// text is the value as mcp.md has it: times in seconds.
func (c docConst) text() string {
	switch {
	case c.Time:
		ns, _ := constant.Int64Val(c.Value)
		return strconv.FormatFloat(time.Duration(ns).Seconds(), 'f', -1, 64)
	case c.Value.Kind() == constant.String:
		return constant.StringVal(c.Value)
	}
	return c.Value.ExactString()
}

// docConsts reads the constants of all files that have a value of their own.
func docConsts(t *testing.T) map[string]docConst {
	t.Helper()
	_, files := layerFiles(t)
	specs, found := map[string]ast.Expr{}, map[string]docConst{}
	for name, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				for i, id := range v.Names {
					if i < len(v.Values) {
						specs[id.Name] = v.Values[i]
						found[id.Name] = docConst{Name: id.Name, File: name, Block: g.Doc.Text(), Remark: v.Comment.Text()}
					}
				}
			}
		}
	}
	for name, c := range found {
		if c.Value, c.Time = docEval(specs, specs[name]); c.Value == nil {
			delete(found, name)
			continue
		}
		found[name] = c
	}
	return found
}

// docEval computes a constant expression; nil where it holds something else.
func docEval(specs map[string]ast.Expr, e ast.Expr) (v constant.Value, isTime bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0), false
	case *ast.ParenExpr:
		return docEval(specs, e.X)
	case *ast.Ident:
		if specs[e.Name] != nil {
			return docEval(specs, specs[e.Name])
		}
	case *ast.UnaryExpr:
		if x, isTime := docEval(specs, e.X); x != nil {
			return constant.UnaryOp(e.Op, x, 0), isTime
		}
	case *ast.SelectorExpr:
		unit := map[string]time.Duration{"Second": time.Second, "Millisecond": time.Millisecond, "Minute": time.Minute, "Hour": time.Hour}[e.Sel.Name]
		if pkg, ok := e.X.(*ast.Ident); ok && pkg.Name == "time" && unit != 0 {
			return constant.MakeInt64(int64(unit)), true
		}
	case *ast.CallExpr: // a conversion
		if len(e.Args) == 1 {
			return docEval(specs, e.Args[0])
		}
	case *ast.BinaryExpr:
		x, xt := docEval(specs, e.X)
		y, yt := docEval(specs, e.Y)
		switch {
		case x == nil || y == nil:
		case e.Op == token.SHL:
			n, _ := constant.Uint64Val(y)
			return constant.Shift(x, token.SHL, uint(n)), xt
		default:
			return constant.BinaryOp(x, e.Op, y), xt || yt
		}
	}
	return nil, false
}

// docUpper turns mcpCallTimeout into MCP_CALL_TIMEOUT.
func docUpper(name string) string {
	var b strings.Builder
	r := []rune(name)
	for i, c := range r {
		if i > 0 && unicode.IsUpper(c) && (unicode.IsLower(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(c))
	}
	return b.String()
}

func docCheckUnit(t *testing.T, row []string, c docConst) {
	t.Helper()
	switch unit := row[2]; {
	case c.Time && unit != "seconds":
		t.Errorf("mcp.md: %s is a time and has unit %q", row[0], unit)
	case strings.HasPrefix(c.Remark, "bytes") != (unit == "bytes"):
		t.Errorf("mcp.md: %s has unit %q, the program says %q", row[0], unit, c.Remark)
	case unit == "":
		t.Errorf("mcp.md: %s has no unit", row[0])
	}
}

func TestDocCaps(t *testing.T) {
	page, consts := readDoc(t), docConsts(t)
	if got := docUpper("mcpHTTPMaxBody"); got != "MCP_HTTP_MAX_BODY" {
		t.Fatalf("mcpHTTPMaxBody reads %s in mcp.md", got)
	}
	caps, by := map[string]string{}, map[string]docConst{}
	for _, c := range consts {
		if c.File == "mcp_wire.go" && strings.HasPrefix(c.Block, "Caps.") {
			caps[docUpper(c.Name)], by[docUpper(c.Name)] = c.text(), c
		}
	}
	rows := page.table(t, "Caps", "Cap")
	docSame(t, "cap", docColumn(t, rows, 1), caps)
	for _, row := range rows {
		docCheckUnit(t, row, by[row[0]])
	}
	for _, row := range page.table(t, "Caps", "Constant") {
		c, ok := consts[row[0]]
		if !ok || c.text() != row[1] {
			t.Errorf("mcp.md: limit %s is %s, the program has %q", row[0], row[1], c.Value)
			continue
		}
		docCheckUnit(t, row, c)
	}
}

func TestDocWire(t *testing.T) {
	page, consts := readDoc(t), docConsts(t)
	methods, codes, exits := map[string]string{}, map[string]string{}, map[string]string{}
	for _, c := range consts {
		switch {
		case strings.HasPrefix(c.Name, "method") && c.Value.Kind() == constant.String:
			methods[c.text()] = ""
		case c.File == "mcp_wire.go" && strings.HasPrefix(c.Name, "code"):
			codes[c.text()] = ""
		case c.File == "cli.go" && strings.HasPrefix(c.Name, "exit"):
			exits[c.text()] = ""
		}
	}
	docSame(t, "method", docColumn(t, page.table(t, "Methods", "Method")), methods)
	docSame(t, "error code", docColumn(t, page.table(t, "Error codes", "Code")), codes)
	docSame(t, "exit code", docColumn(t, page.table(t, "Exit codes", "Code")), exits)

	versions, yes := map[string]string{}, map[bool]string{true: "yes", false: "no"}
	for _, c := range consts {
		if v := c.text(); len(v) == 10 && regexp.MustCompile(`^\d{4}-\d\d-\d\d$`).MatchString(v) {
			versions[v] = ""
		}
	}
	for _, v := range mcpVersions() {
		versions[v] = ""
	}
	for v := range versions {
		versions[v] = yes[slices.Contains(mcpVersions(), v)] + " | " + yes[servesVersion(v)]
	}
	docSame(t, "revision", docColumn(t, page.table(t, "Revisions", "Revision"), 1, 2), versions)
}

func TestDocVault(t *testing.T) {
	doc := map[string]string{}
	text := strings.Join(strings.Fields(strings.Join(readDoc(t)["Vault tables"], " ")), " ")
	_, text, _ = strings.Cut(text, "```")
	text, _, _ = strings.Cut(text, "```")
	for _, m := range regexp.MustCompile(`(\w+)\(([^)]*)\)`).FindAllStringSubmatch(text, -1) {
		doc[m[1]] = m[2]
	}
	v, err := openVault(t.Context(), t.TempDir(), vaultWrite, time.Now, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	defer v.close()
	code := map[string]string{}
	err = v.view(t.Context(), func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(t.Context(), `SELECT l.name, i.name, i.type, i."notnull", i.pk FROM pragma_table_list AS l, pragma_table_info(l.name) AS i
			WHERE l.schema = 'main' AND l.type <> 'shadow' AND l.name NOT LIKE 'sqlite_%' ORDER BY l.name, i.cid`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var table, column, kind string
			var notNull bool
			var key int
			if err := rows.Scan(&table, &column, &kind, &notNull, &key); err != nil {
				return err
			}
			text := strings.TrimSpace(column + " " + kind)
			if notNull {
				text += " NOT NULL"
			}
			if key > 0 {
				text += " PK"
			}
			code[table] = strings.TrimPrefix(code[table]+", "+text, ", ")
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	docSame(t, "table", doc, code)
}

// docFlags writes flags as mcp.md has them.
func docFlags(flags []flagSpec) string {
	var out []string
	for _, f := range flags {
		dashes := "--"
		if len(f.Name) == 1 {
			dashes = "-"
		}
		out = append(out, strings.TrimSpace(dashes+f.Name+" "+f.Value))
	}
	return strings.Join(out, ", ")
}

func TestDocCommands(t *testing.T) {
	page := readDoc(t)
	doc := map[string]string{}
	for _, row := range page.table(t, "Commands", "Command") {
		docColumn(t, [][]string{row})
		doc[row[0]] = row[1] + " | " + strings.ReplaceAll(row[2], "`", "")
	}
	code := map[string]string{}
	for _, c := range append(commands(), promptCommand()) {
		code[strings.TrimSpace("tai "+c.Path)] = c.Args + " | " + docFlags(c.Flags)
	}
	docSame(t, "command", doc, code)
	flags := map[string]string{}
	for _, f := range globalFlags() {
		flags[docFlags([]flagSpec{f})] = ""
	}
	docSame(t, "flag", docColumn(t, page.table(t, "Commands", "Flag")), flags)
	if got, want := len(page.table(t, "Commands", "Command")), len(code); got != want {
		t.Errorf("mcp.md has %d rows of commands, the program %d commands", got, want)
	}
}

func TestDocTools(t *testing.T) {
	page := readDoc(t)
	a := &app{root: t.TempDir()}
	tools, err := a.nativeTools()
	if err != nil {
		t.Fatal(err)
	}
	code, beside := map[string]string{}, []string(nil)
	for _, tl := range tools {
		code[tl.Name] = docToolRow(t, tl)
		if !tl.Core {
			beside = append(beside, tl.Name)
		}
	}
	_, core, _ := strings.Cut(strings.Join(page["Native agent tools"], "\n"), "- The native core,")
	core, _, _ = strings.Cut(core, "\n- ")
	var named []string
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(core, -1) {
		named = append(named, m[1])
	}
	if slices.Sort(named); !slices.Equal(named, slices.Sorted(slices.Values(beside))) {
		t.Errorf("tools beside the native core: mcp.md names %q, the program has %q", named, beside)
	}
	doc := docColumn(t, page.table(t, "Native agent tools", "Tool"), 1, 2)
	for name, text := range doc {
		doc[name] = strings.ReplaceAll(text, "`", "")
	}
	docSame(t, "tool", doc, code)
}

// docToolRow writes the arguments and notes of a tool as mcp.md has them, without the ticks.
func docToolRow(t *testing.T, tl tool) string {
	t.Helper()
	fields, err := chatFields(tl.Schema)
	if err != nil {
		t.Fatal(err)
	}
	props, err := jsonObject(fields["properties"])
	if err != nil {
		t.Fatal(err)
	}
	var args []string
	for _, p := range props {
		if !slices.Contains(fitStrings(fields["required"]), p.Key) {
			p.Key += "?"
		}
		args = append(args, p.Key)
	}
	var notes []string
	for _, h := range []struct {
		on   bool
		text string
	}{{tl.Hints.ReadOnly, "reads"}, {tl.Hints.Destructive, "changes"}, {tl.Hints.Idempotent, "idempotent"}, {tl.Hints.Stateful, "stateful"}} {
		if h.on {
			notes = append(notes, h.text)
		}
	}
	return cmp.Or(strings.Join(args, ", "), "-") + " | " + strings.Join(notes, ", ")
}

func TestDocAudit(t *testing.T) {
	t.Parallel()
	page, consts := readDoc(t), docConsts(t)
	events := map[string]string{}
	for _, c := range consts {
		if c.File == "audit.go" && strings.HasPrefix(c.Block, "The events of a run") {
			events[c.text()] = ""
		}
	}
	docSame(t, "event", docColumn(t, page.table(t, "Run logs", "Event")), events)

	r := auditRecord{Seq: 1, Size: 1, Duration: "1", Data: json.RawMessage(`1`)}
	v := reflect.ValueOf(&r).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.String && f.String() == "" {
			f.SetString("1")
		}
	}
	members, err := jsonObject(bytes.TrimSpace(r.appendLine(nil)))
	if err != nil {
		t.Fatal(err)
	}
	var code, doc []string
	for _, m := range members {
		code = append(code, m.Key)
	}
	for _, row := range page.table(t, "Run logs", "Field") {
		doc = append(doc, row[0])
	}
	if !slices.Equal(code, doc) {
		t.Errorf("fields of a run log: mcp.md has %q, the program writes %q", doc, code)
	}
	if len(code) != reflect.TypeOf(r).NumField() {
		t.Errorf("%d fields are written, the record has %d", len(code), reflect.TypeOf(r).NumField())
	}
	docSame(t, "kind", docColumn(t, page.table(t, "Run logs", "Kind")), docLiterals(t, consts, "Kind", "", "auditKindMCP", "toolKind"))
}

// docLiterals gives the texts that the program puts into a field of that name, or passes first to the function named fn, and those
// of the constants named.
func docLiterals(t *testing.T, consts map[string]docConst, field, fn string, names ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	put := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING && len(lit.Value) > 2 {
			s, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			out[s] = ""
		}
	}
	for _, name := range names {
		c, ok := consts[name]
		if !ok {
			t.Fatalf("the program has no constant %s", name)
		}
		out[strings.TrimSpace(c.text())] = ""
	}
	_, files := layerFiles(t)
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if id, ok := n.Key.(*ast.Ident); ok && id.Name == field {
					put(n.Value)
				}
			case *ast.AssignStmt:
				for i, l := range n.Lhs {
					if sel, ok := l.(*ast.SelectorExpr); ok && sel.Sel.Name == field && len(n.Rhs) == len(n.Lhs) {
						put(n.Rhs[i])
					}
				}
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && id.Name == fn && len(n.Args) > 0 {
					put(n.Args[0])
				}
			}
			return true
		})
	}
	return out
}

func TestDocPolicy(t *testing.T) {
	t.Parallel()
	page, consts := readDoc(t), docConsts(t)
	names := []string{"toolRulePerson"}
	modes := map[approvalMode]bool{}
	for _, c := range consts {
		if strings.HasPrefix(c.Name, "rule") && (c.File == "policy.go" || c.File == "policy_trust.go") {
			names = append(names, c.Name)
		}
		if strings.HasPrefix(c.Name, "mode") && c.File == "policy_presets.go" {
			modes[approvalMode(c.text())] = true
		}
	}
	docSame(t, "rule", docColumn(t, page.table(t, "Policy", "Rule")), docLiterals(t, consts, "Rule", "refused", names...))

	code := map[string]string{}
	for mode := range modes {
		for _, kind := range []string{"reading", "changing"} {
			var cells []string
			for _, presets := range [][]preset{nil, {{ID: "p", Effect: "allow", Tool: "x"}}, {{ID: "p", Effect: "deny", Tool: "x"}}} {
				p := newPolicy(policyConfig{Mode: mode, Presets: presets})
				d, ask := p.judge(&policyRequest{Tool: "x", Args: json.RawMessage(`{}`), Destructive: kind == "changing"})
				cells = append(cells, map[bool]string{true: "run", false: "deny"}[d.Allow]+map[bool]string{true: ", shown"}[d.Shown])
				if ask != "" {
					cells[len(cells)-1] = "ask"
				}
			}
			code["`"+string(mode)+"`, "+kind] = strings.Join(cells, " | ")
		}
	}
	docSame(t, "mode and call", docColumn(t, page.table(t, "Policy", "Mode and call"), 1, 2, 3), code)

	for what, parse := range map[string]func(string) error{
		".tai/config.json":    func(s string) error { return parseConfigFile([]byte(s), false, &workspacePolicy{}) },
		".tai/trust.json":     func(s string) error { return parseTrustFile([]byte(s), false, &workspacePolicy{}) },
		".tai/approvals.json": func(s string) error { return parseApprovals([]byte(s), false, &workspacePolicy{}) },
	} {
		i := slices.IndexFunc(page["Policy"], func(l string) bool { return strings.HasPrefix(l, what+" ") })
		if i < 0 {
			t.Errorf("mcp.md shows no %s", what)
		} else if err := parse(strings.TrimSpace(strings.TrimPrefix(page["Policy"][i], what))); err != nil {
			t.Errorf("mcp.md: the %s that it shows: %v", what, err)
		}
	}
}

func TestDocEntryAndStates(t *testing.T) {
	page := readDoc(t)
	fields := map[string]string{}
	for i := range reflect.TypeFor[serverEntry]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[serverEntry]().Field(i).Tag.Get("json"), ",")
		fields[name] = ""
	}
	docSame(t, "entry field", docColumn(t, page.table(t, "Reading configs", "Field")), fields)
	states := map[string]string{}
	for _, c := range docConsts(t) {
		if c.File == "mcp_pins.go" && strings.HasPrefix(c.Name, "state") {
			states[c.text()] = ""
		}
	}
	docSame(t, "state", docColumn(t, page.table(t, "Bridge", "State")), states)
}

func TestDocProviders(t *testing.T) {
	code := map[string]string{}
	for _, p := range chatProviders() {
		e, window := p.endpoint(""), ""
		if e.Context > 0 {
			window = strconv.Itoa(e.Context)
		}
		code[p.name] = fmt.Sprintf("%s | %s | %s", e.Wire, e.Model, window)
	}
	doc := map[string]string{}
	for _, row := range readDoc(t).table(t, "Model endpoints", "Provider") {
		doc[row[0]] = strings.Join(row[1:], " | ")
	}
	docSame(t, "provider", doc, code)
}

// TestDocEnvironment finds the variables by letting the code ask for them, in every state that one variable alone can bring about.
func TestDocEnvironment(t *testing.T) {
	page := readDoc(t)
	asked := map[string]string{}
	probe := func(set string) {
		get := func(name string) string {
			asked[name] = ""
			if name == set {
				return "/127.0.0.1"
			}
			return ""
		}
		for _, goos := range []string{"linux", "darwin", "windows"} {
			homeFolder("", outside{Getenv: get, GOOS: goos, Dir: "/"})
			configFolder(outside{Getenv: get, GOOS: goos, Dir: "/"})
			browserCommands(goos, get)
		}
		findEndpoint(get)
		localServers(get)
		newProxyRules(get)
		look := func(name string) (string, bool) { return get(name), true }
		newGitHubBase(look)
		githubEnvToken(look)
	}
	probe("")
	for n := 0; n != len(asked); {
		n = len(asked)
		for name := range maps.Clone(asked) {
			probe(name)
		}
	}
	for name := range maps.Clone(asked) {
		if up := strings.ToUpper(name); up != name {
			if _, ok := asked[up]; !ok {
				t.Errorf("%s is asked for, %s is not", name, up)
			}
			delete(asked, name)
		}
	}
	_, files := layerFiles(t)
	for _, f := range files { // and those that are asked for elsewhere by a name that stands there
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if lit, isLit := call.Args[0].(*ast.BasicLit); ok && isLit && (sel.Sel.Name == "Getenv" || sel.Sel.Name == "lookupEnv" || sel.Sel.Name == "LookupEnv") {
				name, _ := strconv.Unquote(lit.Value)
				asked[name] = ""
			}
			return true
		})
	}
	docSame(t, "variable", docColumn(t, page.table(t, "Environment", "Variable")), asked)
}

// TestDocInherited compares the variables that a started server inherits with those that baseVariable names.
func TestDocInherited(t *testing.T) {
	text := strings.Join(readDoc(t)["Transports"], "\n")
	_, text, _ = strings.Cut(text, "On Linux, macOS and the BSDs these are")
	text, _, _ = strings.Cut(text, "Keys and tokens reach")
	doc, code := map[string]string{}, map[string]string{}
	for _, m := range regexp.MustCompile("`([A-Za-z0-9_()]+)`").FindAllStringSubmatch(text, -1) {
		doc[m[1]] = ""
	}
	_, files := layerFiles(t)
	for _, d := range files["mcp_stdio_env.go"].Decls {
		if fn, ok := d.(*ast.FuncDecl); !ok || fn.Name.Name != "baseVariable" {
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if name, _ := strconv.Unquote(lit.Value); len(name) > 1 && name != "()" && name != "windows" {
					code[name] = ""
				}
			}
			return true
		})
	}
	docSame(t, "inherited variable", doc, code)
}

func TestDocServer(t *testing.T) {
	page := readDoc(t)
	code := map[string]string{"--permission-mode": string(modeDanger), "--allowed-origin": "none", "--mcp-port": strconv.Itoa(mcpDefaultPort), "--mcp-bind": mcpDefaultBind}
	docSame(t, "setting", docColumn(t, page.table(t, "Server", "Setting"), 1), code)
	known := docFlags(append(promptCommand().Flags, globalFlags()...))
	for name := range code {
		if !strings.Contains(known, name+" ") {
			t.Errorf("tai has no flag %s", name)
		}
	}
	extras := map[string]string{}
	for _, tl := range newServeChat(serveChatConfig{}).tools() {
		extras[tl.Name] = docToolRow(t, tl)
	}
	doc := docColumn(t, page.table(t, "Served extras", "Extra"), 1, 2)
	for name, text := range doc {
		doc[name] = strings.ReplaceAll(text, "`", "")
	}
	docSame(t, "extra", doc, extras)
	requests := docColumn(t, page.table(t, "Server", "Request"))
	for _, want := range []string{"POST " + mcpPath, "DELETE " + mcpPath} {
		if _, ok := requests[want]; !ok {
			t.Errorf("mcp.md does not describe %s", want)
		}
	}
}

func TestDocCodeMap(t *testing.T) {
	_, files := layerFiles(t)
	code := map[string]string{}
	for name := range files {
		code[name] = ""
	}
	docSame(t, "file", docColumn(t, readDoc(t).table(t, "Code map", "File")), code)
	for name := range code {
		if _, ok := layerOf[name]; !ok {
			t.Errorf("%s has no layer", name)
		}
	}
	for _, m := range regexp.MustCompile("`([a-z_]+(?:_test)?\\.go)`").FindAllStringSubmatch(fmt.Sprint(readDoc(t)), -1) {
		if _, err := os.Stat(m[1]); err != nil {
			t.Errorf("mcp.md names %s: %v", m[1], err)
		}
	}
}
