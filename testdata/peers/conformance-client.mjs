// What the official conformance suite runs as a client: tai's own command line, one home a scenario. The suite appends the server's address and names
// the scenario in MCP_CONFORMANCE_SCENARIO; TAI is the program. With --browse it is the browser that tai opens: the suite's authorization server sends
// it back at once.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

if (process.argv[2] === '--browse') {
  const { ok } = await fetch(process.argv[3]);
  process.exit(ok ? 0 : 1);
}

const address = process.argv.at(-1);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const limit = scenario.startsWith('elicitation') ? 5_000 : 60_000; // its server asks on a GET stream, which tai does not open, and waits
const home = mkdtempSync(path.join(tmpdir(), 'conformance-'));
const self = fileURLToPath(import.meta.url);
const env = { ...process.env, HOME: home, TAI_HOME: path.join(home, 'tai'), XDG_CONFIG_HOME: path.join(home, 'config'), BROWSER: `'${process.execPath}' '${self}' --browse %s` };

function tai(...words) {
  const { status, stdout, stderr, error } = spawnSync(process.env.TAI, ['mcp', ...words], { cwd: home, env, encoding: 'utf8', timeout: limit, stdio: ['ignore', 'pipe', 'pipe'] });
  console.log(`tai mcp ${words.join(' ')}: exit ${status}${error ? ` ${error}` : ''}\n${stdout}${stderr}`);
  return { ok: status === 0, stdout };
}

const call = (tool, args = {}) => tai('call', 'srv', tool, JSON.stringify(args)).ok;
const login = () => tai('login', 'srv', '--yes').ok;

function play() {
  const added = tai('add', 'srv', address, '--yes').ok;
  switch (scenario) {
    case 'initialize': // its server has no tools to list
      return true;
    case 'tools_call':
      return added && tai('tools', 'srv').ok && call('add_numbers', { a: 5, b: 3 });
    case 'sse-retry':
      return call('test_reconnection');
    case 'elicitation-sep1034-client-defaults':
      return call('test_client_elicitation_defaults');
    case 'json-schema-2020-12-preservation': {
      const tools = JSON.parse(tai('tools', 'srv', '--json').stdout).tools;
      return call('json_schema_echo', { schema: tools.find((t) => t.tool === 'json_schema_2020_12_tool').inputSchema });
    }
  }
  if (!scenario.startsWith('auth/')) return added && tai('tools', 'srv').ok;
  if (!login()) return false;
  tai('tools', 'srv');
  return call('test-tool') || (login() && call('test-tool')); // more rights may be wanted: a person logs in once more
}

const ok = play();
rmSync(home, { recursive: true, force: true });
process.exit(ok ? 0 : 1);
