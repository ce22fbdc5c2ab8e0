// A person at a real Chromium: node chromium-login.mjs OUT ADDRESS opens the address, fills in the forms that come and submits them, and writes to the
// folder OUT what the last page is (page.json) and looks like (page.png). It can stand in BROWSER: BROWSER='node chromium-login.mjs OUT'. It speaks the
// DevTools protocol over the browser's own port; chromium comes from the system, and no tests of the repository need it.
// Node 22 has what it needs; Node 20 has it with NODE_OPTIONS=--experimental-websocket.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const [out, address] = process.argv.slice(2);
const profile = mkdtempSync(path.join(tmpdir(), 'chromium-'));
const browser = spawn(process.env.CHROMIUM ?? 'chromium', ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', '--window-size=900,600', '--remote-debugging-port=0', `--user-data-dir=${profile}`, 'about:blank'], { stdio: 'ignore' });
const ended = new Promise((done) => browser.on('exit', done));

async function until(what, look, seconds = 60) {
  for (let i = 0; i < seconds * 10; i++) {
    const found = await look();
    if (found) return found;
    await pause(100);
  }
  throw new Error(`${what} does not come`);
}

const port = await until('the browser', () => {
  try {
    return readFileSync(path.join(profile, 'DevToolsActivePort'), 'utf8').split('\n')[0];
  } catch {
    return '';
  }
});
const pages = await (await fetch(`http://127.0.0.1:${port}/json/list`)).json();
const socket = new WebSocket(pages.find((p) => p.type === 'page').webSocketDebuggerUrl);
await new Promise((ready) => socket.addEventListener('open', ready));

const waiting = new Map();
const seen = { forms: [], requests: [], responses: [], messages: [] };
let last = 0;
socket.addEventListener('message', ({ data }) => {
  const m = JSON.parse(data);
  if (m.id) return waiting.get(m.id)?.(m.result ?? m.error);
  const bare = (url) => url.split('?')[0];
  if (m.method === 'Network.requestWillBeSent') seen.requests.push(`${m.params.request.method} ${bare(m.params.request.url)}`);
  if (m.method === 'Network.responseReceived' && m.params.type === 'Document') seen.responses.push({ url: bare(m.params.response.url), status: m.params.response.status, headers: m.params.response.headers });
  if (m.method === 'Log.entryAdded') seen.messages.push(m.params.entry.text);
});
const send = (method, params = {}) => new Promise((done) => {
  waiting.set(++last, done);
  socket.send(JSON.stringify({ id: last, method, params }));
});
const evaluate = async (expression) => (await send('Runtime.evaluate', { expression, returnByValue: true })).result?.value;

for (const domain of ['Page', 'Network', 'Log', 'Runtime']) await send(`${domain}.enable`);
await send('Page.navigate', { url: address });
const page = 'document.readyState === "complete" && location.href';
let before = 'about:blank';
for (;;) {
  const now = await until('the next page', async () => {
    const at = await evaluate(page);
    return at && at !== before && at;
  });
  before = now;
  const fields = await evaluate('document.forms.length ? [...document.forms[0].elements].filter((e) => e.name && e.type !== "hidden").map((e) => e.name) : null');
  if (!fields) break;
  seen.forms.push(fields);
  await evaluate(`for (const e of document.forms[0].elements) if (e.type === 'text' || e.type === 'password') e.value = 'someone';
    (document.forms[0].querySelector('[type=submit]') ?? document.forms[0]).click?.() ?? document.forms[0].submit()`);
}
const title = await evaluate('document.title');
const text = await evaluate('document.body.innerText');
const style = await evaluate('getComputedStyle(document.body).maxWidth');
await pause(500); // for what the page would load
const shot = await send('Page.captureScreenshot', { format: 'png' });
writeFileSync(path.join(out, 'page.png'), Buffer.from(shot.data, 'base64'));
writeFileSync(path.join(out, 'page.json'), `${JSON.stringify({ at: before.split('?')[0], title, text, style, ...seen }, null, 2)}\n`);
await Promise.race([send('Browser.close'), pause(3000)]);
browser.kill();
await ended;
rmSync(profile, { recursive: true, force: true });
