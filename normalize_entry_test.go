package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The fields of an entry and what becomes of them.
func TestNormalizeFields(t *testing.T) {
	normRun(t, []normRow{
		{name: "both spellings", in: `{"a":{"server_url":"https://h.example.com/mcp","httpHeaders":{"X":"1"},"enabledTools":["t"],"exclude_tools":["u"],"is_active":true}}`, want: `[{"name":"a","url":"https://h.example.com/mcp","headers":{"X":"1"},"allow":["t"],"deny":["u"],"enabled":true}]`, notes: "-", warns: "-"},
		{name: "null everywhere", in: `{"a":{"command":"x","args":null,"env":null,"url":null,"headers":null,"enabled":null,"tools":null,"type":null,"foo":null}}`, want: `[{"name":"a","command":"x"}]`, notes: "-", warns: "-"},
		{name: "blank everywhere", in: `{"a":{"command":"x","args":"","env":"","url":" ","headers":"","enabled":"","type":"","cwd":" "}}`, want: `[{"name":"a","command":"x"}]`, notes: "-", warns: "-"},
		{name: "command as a list is not split", in: `{"a":{"command":["my prog","b c",8,null]}}`, want: `[{"name":"a","command":"my prog","args":["b c","8"]}]`, notes: "command"},
		{name: "whole line as the first of a list", in: `{"a":{"command":["npx -y foo"]}}`, want: `[{"name":"a","command":"npx -y foo"}]`, warns: "a|command"},
		{name: "allow and deny as tai writes them", in: `{"a":{"command":"x","allow":["t"],"deny":["u"]}}`, want: `[{"name":"a","command":"x","allow":["t"],"deny":["u"]}]`, notes: "-"},
		{name: "command list before args", in: `{"a":{"args":["z"],"command":["x","y"]}}`, want: `[{"name":"a","command":"x","args":["y","z"]}]`},
		{name: "command object with outer args", in: `{"a":{"args":["z"],"command":{"path":"x","args":["y"],"env":{"A":"b"}},"env":{"C":"d"}}}`, want: `[{"name":"a","command":"x","args":["y","z"],"env":{"A":"b","C":"d"}}]`},
		{name: "command line before args", in: `{"a":{"args":["z"],"command":"x 'y w' \"\""}}`, want: `[{"name":"a","command":"x","args":["y w","","z"]}]`, notes: "command"},
		{name: "command with a relative path", in: `{"a":{"command":"./bin/my server"}}`, want: `[{"name":"a","command":"./bin/my server"}]`, warns: "a|command"},
		{name: "command with an open quote", in: `{"a":{"command":"x 'y"}}`, err: "a|command|quote"},
		{name: "quoted command without spaces", in: `{"a":{"command":"'x'"}}`, want: `[{"name":"a","command":"x"}]`},
		{name: "command trimmed", in: `{"a":{"command":" x \n"}}`, want: `[{"name":"a","command":"x"}]`, warns: "-"},
		{name: "args with an escaped space", in: `{"a":{"command":"x","args":"a\\ b C:\\dir --q=\"c d\""}}`, want: `[{"name":"a","command":"x","args":["a b","C:\\dir","--q=c d"]}]`, notes: "args"},
		{name: "args never trimmed", in: `{"a":{"command":"x","args":[" a ",""],"env":{"B":" c "}}}`, want: `[{"name":"a","command":"x","args":[" a ",""],"env":{"B":" c "}}]`, notes: "-"},
		{name: "args hold a list", in: `{"a":{"command":"x","args":["a",["b"]]}}`, err: "a|args[1]"},
		{name: "args as a number", in: `{"a":{"command":"x","args":5}}`, err: "a|args"},
		{name: "one path with spaces as argument", in: `{"a":{"command":"x","args":["/srv/my notes/main.js"]}}`, want: `[{"name":"a","command":"x","args":["/srv/my notes/main.js"]}]`, warns: "-"},
		{name: "option with spaces as argument", in: `{"a":{"command":"x","args":["--title=My notes","b c"]}}`, want: `[{"name":"a","command":"x","args":["--title=My notes","b c"]}]`, warns: "-"},
		{name: "options in one argument", in: `{"a":{"command":"npx","args":["-y @acme/a"]}}`, want: `[{"name":"a","command":"npx","args":["-y @acme/a"]}]`, warns: "args"},
		{name: "environment", in: `{"a":{"command":"x","environment":["A=1=2","B="]}}`, want: `[{"name":"a","command":"x","env":{"A":"1=2","B":""}}]`, notes: "environment"},
		{name: "env list without equals", in: `{"a":{"command":"x","env":["A"]}}`, err: "a|env"},
		{name: "env as text", in: `{"a":{"command":"x","env":"A=1"}}`, err: "a|env"},
		{name: "env object value", in: `{"a":{"command":"x","env":{"CONF":{"b":1}}}}`, err: "a|CONF"},
		{name: "env value kinds", in: `{"a":{"command":"x","env":{"N":-1.50e10,"B":false,"Z":null,"S":""}}}`, want: `[{"name":"a","command":"x","env":{"N":"-1.50e10","B":"false","S":""}}]`, notes: "N|B|Z", warns: "-"},
		{name: "env_vars from elsewhere", in: `{"a":{"command":"x","env_vars":["A",{"name":"B","source":"remote"}],"env":{"A":"mine"}}}`, want: `[{"name":"a","command":"x","env":{"A":"mine","B":"${B}"}}]`, warns: "B|remote"},
		{name: "env_vars wrong", in: `{"a":{"command":"x","env_vars":["A B"]}}`, err: "a|env_vars"},
		{name: "url as two", in: `{"a":{"url":["https://h.example.com/1","https://h.example.com/2"]}}`, err: "a|url"},
		{name: "url equal twice", in: `{"a":{"url":" https://h.example.com/1","baseUrl":"https://h.example.com/1"}}`, want: `[{"name":"a","url":"https://h.example.com/1"}]`, notes: "url"},
		{name: "url and serverUrl differ", in: `{"a":{"url":"https://h.example.com/1","serverUrl":"https://h.example.com/2"}}`, err: "a|url|serverUrl"},
		{name: "httpUrl wins over two", in: `{"a":{"httpUrl":"https://h.example.com/1","url":"https://h.example.com/2","baseUrl":"https://h.example.com/2"}}`, want: `[{"name":"a","url":"https://h.example.com/1"}]`, notes: "httpUrl|url|baseUrl"},
		{name: "url of another scheme", in: `{"a":{"url":"ftp://h.example.com"}}`, err: "a|http://"},
		{name: "url is a reference", in: `{"a":{"url":"${BASE}/mcp"}}`, want: `[{"name":"a","url":"${BASE}/mcp"}]`, warns: "-"},
		{name: "url is a rewritten reference", in: `{"a":{"url":"{env:BASE}/sse?x"}}`, want: `[{"name":"a","url":"${BASE}/sse?x"}]`, notes: "{env:", warns: "SSE"},
		{name: "url is a bare name", in: `{"a":{"url":"$BASE/mcp"}}`, err: "a|http://"},
		{name: "url without host", in: `{"a":{"url":"https:///mcp"}}`, err: "a|url"},
		{name: "header value kinds", in: `{"a":{"url":"https://h.example.com","headers":{"X-N":5,"X-Z":null,"X-T":" t "}}}`, want: `[{"name":"a","url":"https://h.example.com","headers":{"X-N":"5","X-T":"t"}}]`, notes: "X-N|X-Z|X-T"},
		{name: "header list value", in: `{"a":{"url":"https://h.example.com","headers":{"X-L":["b"]}}}`, err: "a|X-L"},
		{name: "headers in options", in: `{"a":{"url":"https://h.example.com","requestOptions":{"headers":{"X":"1"},"mode":"cors"}}}`, want: `[{"name":"a","url":"https://h.example.com","headers":{"X":"1"}}]`, notes: "requestOptions|mode"},
		{name: "bearer variable over a fixed header", in: `{"a":{"url":"https://h.example.com","headers":{"authorization":"Bearer x"},"bearer_token_env_var":"TOK"}}`, want: `[{"name":"a","url":"https://h.example.com","headers":{"Authorization":"Bearer ${TOK}"}}]`, warns: "bearer_token_env_var|Authorization"},
		{name: "bearer token", in: `{"a":{"url":"https://h.example.com","bearerToken":"Bearer x"}}`, want: `[{"name":"a","url":"https://h.example.com","headers":{"Authorization":"Bearer x"}}]`, warns: "bearerToken"},
		{name: "header from a variable", in: `{"a":{"url":"https://h.example.com","envHttpHeaders":{"X-A":"ORG"}}}`, want: `[{"name":"a","url":"https://h.example.com","headers":{"X-A":"${ORG}"}}]`},
		{name: "switches agree", in: `{"a":{"command":"x","enabled":true,"disabled":false,"isActive":"True"}}`, want: `[{"name":"a","command":"x","enabled":true}]`, notes: "isActive", warns: "-"},
		{name: "switches disagree", in: `{"a":{"command":"x","isActive":true,"disabled":true}}`, want: `[{"name":"a","command":"x","enabled":false}]`, warns: "a"},
		{name: "switch as a number", in: `{"a":{"command":"x","disabled":1}}`, err: "a|disabled"},
		{name: "star among the tools", in: `{"a":{"command":"x","tools":["t","*"]}}`, want: `[{"name":"a","command":"x"}]`, warns: "-"},
		{name: "empty tools", in: `{"a":{"command":"x","tools":[],"enabled":true}}`, want: `[{"name":"a","command":"x","enabled":false}]`, warns: "a|tools"},
		{name: "two allow lists", in: `{"a":{"command":"x","enabled_tools":["t","u"],"includeTools":["u","v"]}}`, want: `[{"name":"a","command":"x","allow":["u"]}]`, warns: "includeTools"},
		{name: "tools as a table", in: `{"a":{"command":"x","tools":{"t":{"approval_mode":"auto"}}}}`, want: `[{"name":"a","command":"x"}]`, notes: "tools", warns: "-"},
		{name: "approvals that say nothing", in: `{"a":{"command":"x","autoApprove":[],"alwaysAllow":[],"trust":false,"oauth":false,"settings":{},"envFile":""}}`, want: `[{"name":"a","command":"x"}]`, notes: "-", warns: "-"},
		{name: "left out with a warning", in: `{"a":{"url":"https://h.example.com","oauth":{"clientId":"c"},"authProviderType":"g","scopes":["s"],"settings":{"x":1},"sandboxMode":"on"}}`, want: `[{"name":"a","url":"https://h.example.com"}]`, warns: "oauth|authProviderType|scopes|settings|sandboxMode"},
		{name: "timeouts in any spelling", in: `{"a":{"command":"x","timeout":5,"startupTimeoutMs":5,"TIMEOUT_SEC":5}}`, want: `[{"name":"a","command":"x"}]`, notes: "timeout|startupTimeoutMs|TIMEOUT_SEC", warns: "-"},
		{name: "other case is another key", in: `{"a":{"command":"x","Args":["y"]}}`, want: `[{"name":"a","command":"x"}]`, notes: "Args"},
		{name: "type in odd spellings", in: `{"a":{"type":"Streamable_HTTP","url":"https://h.example.com"},"b":{"transport":"STDIO","command":"x"},"c":{"transportType":"streamable http","url":"https://h.example.com"}}`, want: `[{"name":"a","url":"https://h.example.com"},{"name":"b","command":"x"},{"name":"c","url":"https://h.example.com"}]`, warns: "-"},
		{name: "sse in odd spellings", in: `{"a":{"type":"HTTP+SSE","url":"https://h.example.com"},"b":{"transport":"sse","command":"x"},"c":{"transport":{"type":"server-sent-events","url":"https://h.example.com"}}}`, err: "SSE|a|b|c"},
		{name: "websocket type", in: `{"a":{"type":"web-socket","url":"https://h.example.com"}}`, err: "a|WebSocket"},
		{name: "transport object of a command", in: `{"a":{"transport":{"type":"stdio","command":"x","args":["y"],"env":{"A":"b"}}}}`, want: `[{"name":"a","command":"x","args":["y"],"env":{"A":"b"}}]`, notes: "transport"},
		{name: "fields of the other transport, empty", in: `{"a":{"url":"https://h.example.com","args":[],"env":{},"command":""},"b":{"command":"x","headers":{},"url":null}}`, want: `[{"name":"a","url":"https://h.example.com"},{"name":"b","command":"x"}]`, warns: "-"},
		{name: "args of a remote server", in: `{"a":{"url":"https://h.example.com","args":["y"]}}`, want: `[{"name":"a","url":"https://h.example.com"}]`, warns: "a|args"},
		{name: "Windows path to npx", in: `{"a":{"command":"C:\\Program Files\\nodejs\\NPX.cmd","args":["-y"]}}`, os: "windows", want: `[{"name":"a","command":"cmd","args":["/c","C:\\Program Files\\nodejs\\NPX.cmd","-y"]}]`},
		{name: "npx elsewhere", in: `{"a":{"command":"/usr/bin/npx","args":["-y"]}}`, os: "darwin", want: `[{"name":"a","command":"/usr/bin/npx","args":["-y"]}]`, warns: "-"},
	})
}

// References in an entry: what is rewritten and what is warned about.
func TestNormalizeReferences(t *testing.T) {
	normRun(t, []normRow{
		{name: "env with default", in: `{"a":{"command":"${env:BIN:-/opt/x}","args":["${A:-${env:B}}"]}}`, want: `[{"name":"a","command":"${BIN:-/opt/x}","args":["${A:-${B}}"]}]`, warns: "-"},
		{name: "escaped", in: `{"a":{"command":"x","args":["$${env:A}"]}}`, want: `[{"name":"a","command":"x","args":["$${env:A}"]}]`, notes: "-", warns: "-"},
		{name: "without a dollar", in: `{"a":{"command":"x","args":["--k={env:K:-d}"],"env":{"V":"{env:V}"}}}`, want: `[{"name":"a","command":"x","args":["--k=${K:-d}"],"env":{"V":"${V}"}}]`, notes: "{env:|V"},
		{name: "unknown kinds", in: `{"a":{"command":"x","args":["${file:{env:X}}","{file:/k}","${command:pick}","${X?}"],"env":{"E":"${{ secrets.E }}"}}}`, want: `[{"name":"a","command":"x","args":["${file:{env:X}}","{file:/k}","${command:pick}","${X?}"],"env":{"E":"${{ secrets.E }}"}}]`, warns: "${file:{env:X}}|{file:/k}|${command:pick}|${X?}|E"},
		{name: "editor variables", in: `{"a":{"command":"x","args":["${workspaceRoot}","a${/}b","${workspaceFolderBasename:-d}","${pathSeparator}"]}}`, want: `[{"name":"a","command":"x","args":["${workspaceRoot}","a${/}b","${workspaceFolderBasename:-d}","${pathSeparator}"]}]`, warns: "workspaceRoot|${/}|workspaceFolderBasename|pathSeparator"},
		{name: "never closed", in: `{"a":{"command":"x","args":["${A"]}}`, want: `[{"name":"a","command":"x","args":["${A"]}]`, warns: "${A"},
		{name: "bare name in a header", in: `{"a":{"url":"https://h.example.com","headers":{"X-K":"Bearer $TOKEN"}}}`, want: `[{"name":"a","url":"https://h.example.com","headers":{"X-K":"Bearer $TOKEN"}}]`, warns: "X-K"},
		{name: "bare name as an argument", in: `{"a":{"command":"x","args":["$KEY"]}}`, want: `[{"name":"a","command":"x","args":["$KEY"]}]`, warns: "$KEY"},
		{name: "dollars that are text", in: `{"a":{"command":"x","args":["--k=$KEY","$5","$$"],"env":{"P":"pa$$w$","Q":"$(id) ${}"}}}`, want: `[{"name":"a","command":"x","args":["--k=$KEY","$5","$$"],"env":{"P":"pa$$w$","Q":"$(id) ${}"}}]`, warns: "-"},
		{name: "placeholder", in: `{"a":{"command":"x","args":["<dir>"],"env":{"K":"<your key here>","L":"1 < 2 > 0"}}}`, want: `[{"name":"a","command":"x","args":["<dir>"],"env":{"K":"<your key here>","L":"1 < 2 > 0"}}]`, warns: "K"},
		{name: "cwd stays", in: `{"a":{"command":"x","cwd":"${env:HOME}/w"}}`, want: `[{"name":"a","command":"x","cwd":"${env:HOME}/w"}]`, notes: "-", warns: "cwd"},
		{name: "inputs", in: `{"a":{"command":"x","args":["${input:one}"],"env":{"B":"${input:one}${input:two}"}}}`, want: `[{"name":"a","command":"x","args":["${input:one}"],"env":{"B":"${input:one}${input:two}"}}]`, notes: "one|two", warns: "-"},
	})
}

// Where servers are looked for.
func TestNormalizePlaces(t *testing.T) {
	const one = `[{"name":"a","command":"x"}]`
	normRun(t, []normRow{
		{name: "mcp.mcpServers", in: `{"mcp":{"mcpServers":{"a":{"command":"x"}}}}`, want: one},
		{name: "dotted mcpServers", in: `{"amp.mcpServers":{"a":{"command":"x"}},"amp.x":1}`, want: one},
		{name: "mcp_servers in JSON", in: `{"mcp_servers":{"a":{"command":"x","http_headers":{}}}}`, want: one},
		{name: "two keys", in: `{"mcpServers":{"a":{"command":"x"}},"servers":[{"id":"b","url":"https://h.example.com"}]}`, want: `[{"name":"a","command":"x"},{"name":"b","url":"https://h.example.com"}]`, notes: "mcpServers|servers", warns: "-"},
		{name: "same name under two keys", in: `{"servers":{"a":{"command":"old"}},"mcpServers":{"a":{"command":"x"}}}`, want: one, warns: "a"},
		{name: "workspace file", in: `{"folders":[],"settings":{"mcp":{"servers":{"a":{"command":"x"}}}}}`, want: one, notes: "settings.mcp.servers"},
		{name: "mcp further down", in: `{"ext":{"mcp":{"a":{"command":"x"}}}}`, want: one, notes: "ext.mcp"},
		{name: "an empty key beside a full one", in: `{"servers":{},"mcpServers":{"a":{"command":"x"}}}`, want: one, notes: "-", warns: "-"},
		{name: "duplicate in a list entry", in: `{"servers":[{"name":"a","command":"x","env":{"A":"1"},"env":{}}]}`, want: one, warns: "a.env"},
		{name: "whole line as a command list", in: `{"command":["npx -y foo"]}`, err: "name"},
		{name: "two maps further down", in: `{"projects":{"/p":{"mcpServers":{"a":{"command":"x"}}},"/q":{"mcpServers":{"b":{"command":"y"}}}}}`, want: `[{"name":"a","command":"x"},{"name":"b","command":"y"}]`, notes: "/p|/q"},
		{name: "server called mcp", in: `{"mcp":{"command":"x"}}`, want: `[{"name":"mcp","command":"x"}]`},
		{name: "server called openapi", in: `{"openapi":{"command":"x"}}`, want: `[{"name":"openapi","command":"x"}]`},
		{name: "swagger", in: `{"swagger":"2.0","servers":[{"url":"https://h.example.com"}]}`, err: "OpenAPI"},
		{name: "map with a schema", in: `{"$schema":"https://h.example.com/s.json","a":{"command":"x"}}`, want: one, warns: "-"},
		{name: "map with one bad", in: `{"a":{"command":"x"},"b":"npx y","c":{"type":"sse","url":"https://h.example.com"}}`, want: one, warns: "b|c|SSE"},
		{name: "no repository taken for a server", in: `{"title":"t","theme":"d","repository":{"type":"git","url":"https://h.example.com"}}`, err: "title|theme|repository"},
		{name: "empty list", in: `{"servers":[]}`, err: "servers"},
		{name: "entry right under the key", in: `{"mcpServers":{"command":"x","args":[]}}`, err: "mcpServers|name"},
		{name: "list with bad places", in: `{"servers":[{"name":"a","command":"x"},{"title":"t"},"s"]}`, want: one, warns: "entry 2|entry 3"},
		{name: "list without names", in: `[{"command":"npx","args":["p"]},{"name":"p","command":"x"},{"command":"uvx","args":["p"]}]`, want: `[{"name":"p","command":"x"},{"name":"p-2","command":"npx","args":["p"]},{"name":"p-3","command":"uvx","args":["p"]}]`, notes: "p-2|p-3"},
		{name: "gate as dotted keys", in: `{"mcp.excluded":["a"],"mcpServers":{"a":{"command":"x","enabled":true}}}`, want: `[{"name":"a","command":"x","enabled":false}]`, notes: "a"},
		{name: "gate around its own map", in: `{"mcp":{"allowed":["a"],"servers":{"a":{"command":"x"},"b":{"command":"y"}}}}`, want: `[{"name":"a","command":"x"},{"name":"b","command":"y","enabled":false}]`, notes: "b"},
		{name: "copies of mcp", in: `{"mcp":{"servers":{"a":{"command":"x"}}},"mcp":{"servers":{"b":{"command":"y"}}}}`, want: `[{"name":"a","command":"x"},{"name":"b","command":"y"}]`, warns: "mcp"},
		{name: "duplicate in an ignored key", in: `{"a":{"command":"x","dev":{"k":1,"k":2}}}`, want: one, warns: "a.dev.k"},
		{name: "bare entry by address", in: `{"url":"https://mcp.example.com:8443/x"}`, want: `[{"name":"mcp.example.com","url":"https://mcp.example.com:8443/x"}]`, notes: "mcp.example.com"},
		{name: "bare entry by file name", in: `{"command":"C:\\tools\\notes.exe"}`, want: `[{"name":"notes","command":"C:\\tools\\notes.exe"}]`, notes: "notes"},
		{name: "bare entry by image", in: `{"command":"docker","args":["run","-i","--rm","-e","A","ghcr.example.com/acme/notes:1"]}`, want: `[{"name":"notes","command":"docker","args":["run","-i","--rm","-e","A","ghcr.example.com/acme/notes:1"]}]`, notes: "notes"},
		{name: "bare entry behind cmd", in: `{"command":"cmd","args":["/c","npx","-y","@acme/notes@2"]}`, os: "windows", want: `[{"name":"notes","command":"cmd","args":["/c","npx","-y","@acme/notes@2"]}]`, warns: "-"},
		{name: "bare entry of an interpreter", in: `{"command":"/usr/bin/python3.12","args":["-m","notes"]}`, err: "name"},
		{name: "bare entry of uv", in: `{"command":"uv","args":["run","notes"]}`, err: "name"},
		{name: "own bad name", in: `{"name":"a\u0000","command":"x"}`, err: "name"},
		{name: "caller's bad name", in: `{"command":"x"}`, given: "a\u0007", err: "name"},
		{name: "caller's name wins", in: `{"name":"own","command":"x"}`, given: " a ", want: one, notes: "-"},
	})
}

// Registry files and package files.
func TestNormalizeRegistry(t *testing.T) {
	normRun(t, []normRow{
		{name: "snake case", in: `{"name":"io.example/notes","packages":[{"registry_type":"npm","identifier":"@acme/notes","version":"1.0","runtime_hint":"bunx","runtime_arguments":[{"type":"named","name":"--bun-flag","value":"v"}],"package_arguments":[{"type":"positional","value_hint":"data_dir","is_required":true},{"type":"named","name":"--level"},{"type":"named","name":"--api-key","is_required":true}],"environment_variables":[{"name":"A","is_required":true},{"name":"B"},{"name":"C","value":"p/{user}"}]}]}`, want: `[{"name":"notes","command":"bunx","args":["-y","--bun-flag","v","@acme/notes@1.0","${DATA_DIR}","--api-key","${API_KEY}"],"env":{"A":"${A}","C":"p/${user}"}}]`, notes: "B", warns: "DATA_DIR|API_KEY"},
		{name: "nuget", in: `{"name":"io.example/notes","packages":[{"registryType":"nuget","identifier":"Acme.Notes","version":"1.0","packageArguments":[{"type":"positional","value":"mcp"}]}]}`, want: `[{"name":"notes","command":"dnx","args":["Acme.Notes@1.0","--yes","--","mcp"]}]`, warns: "-"},
		{name: "nuget without arguments", in: `{"name":"io.example/notes","packages":[{"registryType":"nuget","identifier":"Acme.Notes","version":"1.0"}]}`, want: `[{"name":"notes","command":"dnx","args":["Acme.Notes@1.0","--yes"]}]`},
		{name: "pypi with hint", in: `{"name":"io.example/notes","packages":[{"registryType":"pypi","identifier":"notes","version":"2","runtimeArguments":[{"type":"named","name":"--python","value":"3.12"}],"packageArguments":[{"value":5}]}]}`, want: `[{"name":"notes","command":"uvx","args":["--python","3.12","notes@2","5"]}]`},
		{name: "second package runs", in: `{"name":"io.example/notes","packages":[{"registryType":"mcpb","identifier":"https://h.example.com/n.mcpb"},{"registryType":"npm","identifier":"web","transport":{"type":"streamable-http","url":"http://localhost:1"}},{"registryType":"npm","identifier":"notes"}]}`, want: `[{"name":"notes","command":"npx","args":["-y","notes"]}]`, notes: "https://h.example.com/n.mcpb|web"},
		{name: "bundle only", in: `{"name":"io.example/notes","packages":[{"registryType":"mcpb","identifier":"https://h.example.com/n.mcpb"}]}`, err: "notes"},
		{name: "nothing offered", in: `{"name":"io.example/notes","packages":[],"remotes":[]}`, err: "notes"},
		{name: "address with a variable", in: `{"name":"io.example/notes","remotes":[{"transport_type":"streamable","url":"https://{tenant}.h.example.com/mcp","headers":[{"name":"Authorization","value":"Bearer {token}"},{"name":"X-Opt"}]}]}`, want: `[{"name":"notes","url":"https://${tenant}.h.example.com/mcp","headers":{"Authorization":"Bearer ${token}"}}]`, notes: "X-Opt"},
		{name: "oci wrapped nowhere", in: `{"name":"io.example/notes","packages":[{"registryType":"oci","runtimeHint":"podman","identifier":"acme/notes","version":"1.2","environmentVariables":[{"name":"A","default":"b"}]}]}`, os: "windows", want: `[{"name":"notes","command":"podman","args":["run","-i","--rm","-e","A","acme/notes:1.2"],"env":{"A":"b"}}]`, warns: "-"},
		{name: "npm wrapped on Windows", in: `{"name":"io.example/notes","packages":[{"registryType":"npm","identifier":"notes"}]}`, os: "windows", want: `[{"name":"notes","command":"cmd","args":["/c","npx","-y","notes"]}]`},
		{name: "package with bin text", in: `{"name":"@acme/notes","version":"1.0","bin":"cli.js","repository":{"type":"git","url":"https://h.example.com/n.git"}}`, want: `[{"name":"notes","command":"npx","args":["-y","@acme/notes"]}]`, notes: "npx"},
		{name: "package with fitting bin", in: `{"name":"notes","bin":{"other":"a.js","notes":"b.js"}}`, want: `[{"name":"notes","command":"npx","args":["-y","notes"]}]`},
		{name: "package with strange bins", in: `{"name":"notes","bin":{"one":"a.js","two":"b.js"}}`, err: "notes|one|two"},
		{name: "package that looks like an option", in: `{"name":"--yes","bin":"a.js"}`, err: "--yes"},
	})
}

// CFG-06: what is too large or too deep is refused by its limit; many entries are read with a warning; copies of the
// server map are joined with one.
func TestNormalizeCFG06(t *testing.T) {
	if normalizeMax != 1<<20 || confMaxDepth != 100 {
		t.Errorf("the limits are %d bytes and %d levels, want 1 MiB and 100", normalizeMax, confMaxDepth)
	}
	_, err := normalize([]byte(strings.Repeat("x", 10<<20)), normalizeOptions{})
	if err == nil || !strings.Contains(err.Error(), "too large") || !strings.Contains(err.Error(), fmt.Sprint(normalizeMax)) {
		t.Errorf("10 MB: %v, want too large and the limit", err)
	}
	if _, err := normalize([]byte(strings.Repeat(" ", normalizeMax)), normalizeOptions{}); err == nil || strings.Contains(err.Error(), "large") {
		t.Errorf("exactly 1 MiB: %v, want it to be read (and found empty)", err)
	}
	deep := `{"a":{"command":"x","y":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + `}}`
	if _, err := normalize([]byte(deep), normalizeOptions{}); err == nil || !strings.Contains(err.Error(), "100") || !strings.Contains(err.Error(), "nest") {
		t.Errorf("nesting of 10,001: %v, want nest and the limit", err)
	}
	var b strings.Builder
	for i := range 10000 {
		fmt.Fprintf(&b, `"s%d":{"command":"x%d"},`, i, i)
	}
	res, err := normalize([]byte(`{"mcpServers":{`+b.String()+`}}`), normalizeOptions{})
	if err != nil || len(res.Servers) != 10000 || !normHas(res.Warnings, "32") {
		t.Errorf("10,000 entries: %d read, %v, warnings %q", len(res.Servers), err, res.Warnings)
	}
	res, err = normalize([]byte(`{"mcpServers":{"a":{"command":"x"}},"mcpServers":{"b":{"command":"y"}}}`), normalizeOptions{})
	if err != nil || len(res.Servers) != 2 || !normHas(res.Warnings, "mcpServers") {
		t.Errorf("mcpServers twice: %+v, %v", res, err)
	}
}

// CFG-07: names that could mislead or do harm are refused by the name rule.
func TestNormalizeCFG07(t *testing.T) {
	for _, name := range []string{"", "../x", "..", ".", "a/../b", `..\x`, "a/.", strings.Repeat("n", 129), strings.Repeat("n", 1024), "a\x00b", "a\x1b[31m", "a\nb", "a\u0085b", "a\u202eb", "a\u200bb", "\ufeffa", "a\u2028b", "a\xffb"} {
		if err := goodServerName(name); err == nil || !strings.Contains(err.Error(), "name") {
			t.Errorf("goodServerName(%q) = %v, want a refusal that says name", name, err)
		}
		key, err := json.Marshal(name)
		if err != nil || strings.Contains(name, "\xff") || strings.HasPrefix(name, "\ufeff") {
			continue // not in JSON; a mark in front is trimmed there
		}
		res, err := normalize([]byte(`{"mcpServers":{`+string(key)+`:{"command":"x"},"good":{"command":"y"}}}`), normalizeOptions{})
		if err != nil || len(res.Servers) != 1 || res.Servers[0].Name != "good" || !normHas(res.Warnings, "name") {
			t.Errorf("%q: %+v, %v, want only good and a warning", name, res, err)
		}
		if _, err := normalize([]byte(`{"mcpServers":{`+string(key)+`:{"command":"x"}}}`), normalizeOptions{}); err == nil || !strings.Contains(err.Error(), "name") {
			t.Errorf("%q alone: %v, want an error that says name", name, err)
		}
	}
	for _, name := range []string{"a", strings.Repeat("n", 128), "My Notes", "github.com/acme/x", "acme.docs-mcp", "заметки", "a..b", "...", "x/.hidden", "😀"} {
		if err := goodServerName(name); err != nil {
			t.Errorf("goodServerName(%q) = %v, want it accepted", name, err)
		}
	}
}

// F02: on Windows npx goes through cmd once; nothing else does, and nothing changes elsewhere.
func TestNormalizeF02(t *testing.T) {
	const in = `[{"name":"1","command":"npx","args":["-y","pkg"]},
 {"name":"2","command":"npx.cmd","args":["-y","pkg"]},
 {"name":"3","command":"C:\\Program Files\\nodejs\\npx","args":["-y","pkg"]},
 {"name":"4","command":"cmd","args":["/c","npx","-y","pkg"]},
 {"name":"5","command":"uvx","args":["pkg"]}]`
	for goos, want := range map[string][][]string{
		"windows": {{"cmd", "/c", "npx", "-y", "pkg"}, {"cmd", "/c", "npx.cmd", "-y", "pkg"}, {"cmd", "/c", `C:\Program Files\nodejs\npx`, "-y", "pkg"}, {"cmd", "/c", "npx", "-y", "pkg"}, {"uvx", "pkg"}},
		"linux":   {{"npx", "-y", "pkg"}, {"npx.cmd", "-y", "pkg"}, {`C:\Program Files\nodejs\npx`, "-y", "pkg"}, {"cmd", "/c", "npx", "-y", "pkg"}, {"uvx", "pkg"}},
	} {
		res, err := normalize([]byte(in), normalizeOptions{OS: goos})
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Servers) != len(want) {
			t.Fatalf("%s: %d servers, want %d", goos, len(res.Servers), len(want))
		}
		for i, e := range res.Servers {
			if got := append([]string{e.Command}, e.Args...); !slices.Equal(got, want[i]) {
				t.Errorf("%s: stored %q, want %q", goos, got, want[i])
			}
			if got := spawnArgv(e, goos); !slices.Equal(got, want[i]) { // what is stored is what runs
				t.Errorf("%s: spawnArgv gives %q, want %q", goos, got, want[i])
			}
		}
	}
	if got := spawnArgv(serverEntry{Transport: "http", URL: "https://h.example.com"}, "windows"); got != nil {
		t.Errorf("a remote server has the argv %q", got)
	}
}

// A stored server comes back as it is, and changing the result leaves the stored one alone.
func TestNormalizeStored(t *testing.T) {
	on := false
	stored := serverEntry{Name: "my notes", Transport: "stdio", Command: "x", Args: []string{"a"}, Env: map[string]string{"K": "v"}, Enabled: &on, Source: "explicit"}
	res, err := normalize([]byte(" my notes\r\n"), normalizeOptions{Stored: []serverEntry{{Name: "My Notes"}, stored}})
	if err != nil || len(res.Servers) != 1 || !reflect.DeepEqual(res.Servers[0], stored) {
		t.Fatalf("%+v, %v, want the stored entry", res, err)
	}
	res.Servers[0].Args[0], res.Servers[0].Env["K"], *res.Servers[0].Enabled = "b", "w", true
	if stored.Args[0] != "a" || stored.Env["K"] != "v" || on {
		t.Error("the result shares memory with the stored entry")
	}
}

// Two names that bridge to the same prefix are told, and both stay.
func TestNormalizeSamePrefix(t *testing.T) {
	res, err := normalize([]byte(`{"My-Notes":{"command":"x"},"my_notes":{"command":"y"},"other":{"command":"z"}}`), normalizeOptions{})
	if err != nil || len(res.Servers) != 3 || !normHas(res.Warnings, "My-Notes") || !normHas(res.Warnings, "mcp_my_notes_") || normHas(res.Warnings, "other") {
		t.Errorf("%+v, %v", res, err)
	}
}

// Values that may be secrets stand in no message.
func TestNormalizeKeepsSecretsOut(t *testing.T) {
	const in = `{"a":{"url":"https://h.example.com","headers":{"X-A":" s3cret <key> $X ","X-B":77413},"env":{"K":"s3cret"},"bearer_token":"s3cret","foo":"s3cret"},"b":{"command":"x","env":{"P":77413},"headers":{"H":"s3cret"}},"c":{"url":"h.example.com?k=s3cret"}}`
	res, err := normalize([]byte(in), normalizeOptions{})
	if err != nil || len(res.Servers) != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, m := range append(res.Notes, res.Warnings...) {
		if strings.Contains(m, "s3cret") || strings.Contains(m, "77413") {
			t.Errorf("a secret in %q", m)
		}
	}
}
