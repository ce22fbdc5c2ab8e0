// This file turns the two files that describe a server without being a client's configuration into an entry: a registry
// server.json and a package.json. It fetches nothing: what it makes is the command that would run the package.
package main

import (
	"slices"
	"strings"
)

// isRegistryFile reports a server.json: it has packages or remotes, lists of objects, or is named like an entry of the
// registry (a reverse domain and a slash) without either.
func isRegistryFile(n confNode) bool {
	for _, key := range []string{"packages", "remotes"} {
		if v, ok := n.get(key); ok && v.kind == confList {
			if len(v.items) > 0 && v.items[0].node.kind == confMap {
				return true
			}
			if name, ok := n.get("name"); len(v.items) == 0 && ok && name.kind == confText {
				return true
			}
		}
	}
	schema, ok := n.get("$schema")
	return ok && strings.Contains(schema.text, "server.schema.json")
}

// field2 reads a member in its camelCase or its snake_case spelling.
func field2(n confNode, camel string) (confNode, bool) {
	if v, ok := n.get(camel); ok {
		return v, true
	}
	return n.get(foldKey(camel))
}

// scalarOf is a text, number or boolean as text.
func scalarOf(n confNode, ok bool) (string, bool) {
	return n.text, ok && (n.kind == confText || n.kind == confNumber || n.kind == confBool)
}

func textOf(n confNode, camel string) string {
	s, _ := scalarOf(field2(n, camel))
	return strings.TrimSpace(s)
}

//go:noinline for size: it is called in many places
func itemsOf(n confNode, camel string) []confMember {
	if v, ok := field2(n, camel); ok && v.kind == confList {
		return v.items
	}
	return nil
}

// registryReader turns one server.json into an entry.
type registryReader struct {
	rep *confReport
}

// readRegistry returns the entry and its own name. The first package that runs over stdio is taken, otherwise the first
// Streamable HTTP remote; a note names the other offers.
func readRegistry(n confNode, source string, rep *confReport) (serverEntry, string, error) {
	full := textOf(n, "name")
	name := strings.TrimSpace(full[strings.LastIndexByte(full, '/')+1:])
	x := &registryReader{rep: rep}
	packages, remotes := itemsOf(n, "packages"), itemsOf(n, "remotes")
	pick := slices.IndexFunc(packages, func(m confMember) bool { return packageRuns(m.node) })
	remote := -1
	if pick < 0 {
		remote = slices.IndexFunc(remotes, func(m confMember) bool { return remoteKind(m.node) == "http" && textOf(m.node, "url") != "" })
	}
	var e serverEntry
	var err error
	switch {
	case pick >= 0:
		e, err = x.fromPackage(packages[pick].node)
	case remote >= 0:
		e = x.fromRemote(remotes[remote].node)
	case len(remotes) > 0 && len(packages) == 0 && !slices.ContainsFunc(remotes, func(m confMember) bool { return remoteKind(m.node) != "sse" }):
		err = newError("it offers only the legacy HTTP+SSE transport, which is not supported")
	default:
		err = newError("it offers nothing that can be run: no npm, pypi, oci or nuget package over stdio and no Streamable HTTP remote (the legacy HTTP+SSE transport is not supported)")
	}
	if err != nil {
		return serverEntry{}, name, err
	}
	x.others(packages, remotes, pick, remote)
	e, err = ruleEntry(e, source, rep)
	return e, name, err
}

func (x *registryReader) others(packages, remotes []confMember, pick, remote int) {
	for i, m := range packages {
		if i != pick && m.node.kind == confMap {
			x.rep.note("the %s package %s is not used", packageType(m.node), confShow(packageID(m.node)))
		}
	}
	for i, m := range remotes {
		if i != remote && m.node.kind == confMap {
			x.rep.note("the %s remote %s is not used", confShow(remoteType(m.node)), confShow(textOf(m.node, "url")))
		}
	}
}

func remoteType(n confNode) string {
	if t := textOf(n, "type"); t != "" {
		return t
	}
	return textOf(n, "transportType")
}

// remoteKind is transportKind of a remote; the older files say streamable.
func remoteKind(n confNode) string {
	switch t := remoteType(n); strings.ToLower(t) {
	case "", "streamable":
		return "http"
	default:
		return transportKind(t)
	}
}

// packageType is the kind of registry, which older files call registry_name.
func packageType(n confNode) string {
	t := textOf(n, "registryType")
	if t == "" {
		t = textOf(n, "registryName")
	}
	if t = strings.ToLower(t); t == "docker" {
		return "oci"
	}
	return t
}

func packageID(n confNode) string {
	if id := textOf(n, "identifier"); id != "" {
		return id
	}
	return textOf(n, "name")
}

// packageRuns reports a package that can be started and talks over stdio.
func packageRuns(n confNode) bool {
	if packageID(n) == "" || !slices.Contains([]string{"npm", "pypi", "oci", "nuget"}, packageType(n)) {
		return false
	}
	t, ok := n.get("transport")
	if !ok {
		return true
	}
	kind := t.text
	if t.kind == confMap {
		kind = textOf(t, "type")
	}
	return kind == "" || transportKind(kind) == "stdio"
}

func (x *registryReader) fromPackage(n confNode) (serverEntry, error) {
	id, version, kind := packageID(n), textOf(n, "version"), packageType(n)
	if strings.HasPrefix(id, "-") || strings.ContainsAny(id, " \t\r\n") {
		return serverEntry{}, errorf("the package %s has an unusable name", confQuote(id))
	}
	e := serverEntry{Transport: "stdio"}
	runtime := x.arguments(itemsOf(n, "runtimeArguments"))
	args := x.arguments(itemsOf(n, "packageArguments"))
	vars := x.variables(itemsOf(n, "environmentVariables"), false)
	pinned := id
	if version != "" && !strings.Contains(id[1:], "@") {
		pinned += "@" + version
	}
	switch kind {
	case "npm":
		e.Command, e.Args = "npx", slices.Concat([]string{"-y"}, runtime, []string{pinned}, args)
	case "pypi":
		e.Command, e.Args = "uvx", slices.Concat(runtime, []string{pinned}, args)
	case "nuget":
		e.Command, e.Args = "dnx", slices.Concat([]string{pinned, "--yes"}, runtime)
		if len(args) > 0 {
			e.Args = slices.Concat(e.Args, []string{"--"}, args)
		}
	case "oci":
		e.Command, e.Args = "docker", slices.Concat([]string{"run", "-i", "--rm"}, runtime)
		for _, v := range vars {
			e.Args = append(e.Args, "-e", v.name)
		}
		if last := id[strings.LastIndexByte(id, '/')+1:]; version != "" && !strings.ContainsAny(last, ":@") {
			id += ":" + version
		}
		e.Args = slices.Concat(e.Args, []string{id}, args)
	}
	if hint := textOf(n, "runtimeHint"); hint != "" {
		e.Command = hint
	}
	e.Env = pairMap(vars)
	return e, nil
}

func (x *registryReader) fromRemote(n confNode) serverEntry {
	e := serverEntry{Transport: "http", URL: x.braces(textOf(n, "url"))}
	e.Headers = pairMap(x.variables(itemsOf(n, "headers"), true))
	return e
}

//go:noinline for size: it is called in many places
func pairMap(ps []confPair) map[string]string {
	if len(ps) == 0 {
		return nil
	}
	out := make(map[string]string, len(ps))
	for _, p := range ps {
		out[p.name] = p.value
	}
	return out
}

// given is the fixed value of an input, otherwise its default.
func (x *registryReader) given(n confNode) (string, bool) {
	for _, key := range []string{"value", "default"} {
		if s, ok := scalarOf(n.get(key)); ok {
			return x.braces(s), true
		}
	}
	return "", false
}

func required(n confNode) bool {
	s, _ := scalarOf(field2(n, "isRequired"))
	return s == "true"
}

// arguments reads positional and named arguments. A required one without a value becomes a reference, so that the start
// is refused until it is set.
func (x *registryReader) arguments(items []confMember) []string {
	var out []string
	for _, m := range items {
		n := m.node
		if n.kind != confMap {
			if s, ok := scalarOf(n, true); ok {
				out = append(out, s)
			}
			continue
		}
		value, ok := x.given(n)
		name := textOf(n, "name")
		if !ok && required(n) {
			value, ok = x.hole(n, name, "argument")
		}
		if !ok {
			continue
		}
		if strings.EqualFold(textOf(n, "type"), "named") && name != "" {
			out = append(out, name)
		}
		out = append(out, value)
	}
	return out
}

// hole is the reference for a required input without a value, named after its hint or its own name in capitals.
func (x *registryReader) hole(n confNode, name, what string) (string, bool) {
	hint := textOf(n, "valueHint")
	if hint == "" {
		hint = name
	}
	v := strings.Trim(strings.ToUpper(toolPrefix(hint)), "_")
	if v == "" {
		v = "ARGUMENT"
	} else if refNamePrefix(v) != v {
		v = "_" + v
	}
	x.rep.warn("the required %s %s has no value: %s must be set in the environment or the vault", what, confShow(hint), v)
	return "${" + v + "}", true
}

// variables reads environment variables or headers.
func (x *registryReader) variables(items []confMember, headers bool) []confPair {
	var out []confPair
	for _, m := range items {
		name := textOf(m.node, "name")
		if m.node.kind != confMap || name == "" {
			x.rep.warn("an environment variable or header without a name is left out")
			continue
		}
		value, ok := x.given(m.node)
		switch {
		case ok:
		case !required(m.node):
			x.rep.note("the optional %s is left out", confShow(name))
			continue
		case headers:
			value, _ = x.hole(m.node, name, "header")
		default:
			value = "${" + name + "}"
		}
		if headers {
			value = strings.TrimSpace(value)
		}
		out = append(out, confPair{name: name, value: value})
	}
	return out
}

// braces turns {name} into ${name}; a reference stays one.
func (x *registryReader) braces(s string) string {
	var b textBuilder
	for i := 0; i < len(s); i++ {
		if s[i] == '{' && (i == 0 || s[i-1] != '$') {
			if name := refNamePrefix(s[i+1:]); name != "" && strings.HasPrefix(s[i+1+len(name):], "}") {
				x.rep.note("{%s} was rewritten to ${%s}", name, name)
				b.WriteByte('$')
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// isPackageFile reports a package.json. A version alone is a weak sign: it also stands in configurations.
func isPackageFile(n confNode, entries bool) bool {
	if name, ok := n.get("name"); !ok || name.kind != confText {
		return false
	}
	if _, ok := n.get("version"); ok && !entries {
		return true
	}
	for _, key := range []string{"bin", "main", "scripts", "dependencies", "devDependencies", "peerDependencies", "exports", "module", "engines"} {
		if _, ok := n.get(key); ok {
			return true
		}
	}
	return false
}

// readPackage returns the entry that runs the package of a package.json, and the name of that package without its scope.
func readPackage(n confNode, source string, rep *confReport) (serverEntry, string, error) {
	full := textOf(n, "name")
	name := full[strings.LastIndexByte(full, '/')+1:]
	bin, ok := n.get("bin")
	var bins []string
	if ok && bin.kind == confMap {
		for _, m := range bin.last() {
			bins = append(bins, m.key)
		}
	}
	switch {
	case strings.HasPrefix(full, "-") || strings.ContainsAny(full, " \t\r\n") || name == "":
		return serverEntry{}, name, errorf("the package %s has an unusable name", confQuote(full))
	case len(bins) == 0 && (bin.kind != confText || strings.TrimSpace(bin.text) == ""):
		return serverEntry{}, name, errorf("the package %s has no bin, so npx can't run it", confQuote(full))
	case len(bins) > 1 && !slices.Contains(bins, name):
		shown := make([]string, min(len(bins), 30))
		for i := range shown {
			shown[i] = confClip(bins[i], 100)
		}
		return serverEntry{}, name, errorf("the package %s has several programs in bin and none of them is named like it: %s", confQuote(full), strings.Join(shown, ", "))
	}
	rep.note("a package.json was read: it runs as npx -y %s", confShow(full))
	return serverEntry{Transport: "stdio", Command: "npx", Args: []string{"-y", full}, Source: source}, name, nil
}
