// Codex as a client: node codex-client.mjs NAME lists the tools of the server NAME in the config.toml of CODEX_HOME and reads note.txt through it.
// Its app-server speaks JSON-RPC without the version member, a message a line; no account and no model is needed for what is asked of it here.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import readline from 'node:readline';

const server = process.argv[2];
const program = path.join(path.dirname(createRequire(import.meta.url).resolve('@openai/codex/package.json')), 'bin', 'codex.js');
const codex = spawn(process.execPath, [program, 'app-server'], { stdio: ['pipe', 'pipe', 'inherit'] });
const waiting = new Map();
readline.createInterface({ input: codex.stdout }).on('line', (line) => {
  const message = JSON.parse(line);
  if (message.method || !waiting.has(message.id)) return;
  waiting.get(message.id)(message);
  waiting.delete(message.id);
});
const send = (message) => codex.stdin.write(JSON.stringify(message) + '\n');
let last = 0;
async function ask(method, params) {
  const id = ++last;
  const answered = new Promise((resolve) => waiting.set(id, resolve));
  send({ id, method, params });
  const { result, error } = await answered;
  if (error) throw new Error(`${method}: ${error.message}`);
  return result;
}
try {
  await ask('initialize', { clientInfo: { name: 'peer', title: 'peer', version: '1' } });
  send({ method: 'initialized' });
  const { thread } = await ask('thread/start', { cwd: process.cwd(), approvalPolicy: 'never', sandbox: 'read-only' });
  const result = await ask('mcpServer/tool/call', { threadId: thread.id, server, tool: 'file_read', arguments: { path: 'note.txt' } });
  const { data } = await ask('mcpServerStatus/list', {});
  console.log(JSON.stringify({ tools: Object.keys(data.find((s) => s.name === server).tools), result }));
} catch (fault) {
  console.error(fault.message);
  process.exitCode = 1;
}
const ended = new Promise((resolve) => codex.on('exit', resolve));
codex.kill();
await ended;
