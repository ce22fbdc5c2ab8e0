// A real authorization server (oidc-provider) and, at another port, an MCP endpoint that takes only its tokens and hands everything else on to an
// MCP server without a key. Both are on this machine alone.
//
//	node oauth-server.mjs UPSTREAM [--tenant PATH] [--plain-challenge] [--no-registration]
//
// --tenant gives the issuer a path; --plain-challenge leaves resource_metadata out of the challenge. It prints one line of JSON: mcp and issuer
// are addresses, control is where a test steers it: GET gives what clients did, POST …/expire, …/revoke and …/forget change what is known of them.
import http from 'node:http';
import Provider, { errors } from 'oidc-provider';

const words = process.argv.slice(3);
const option = (name) => (words.includes(name) ? words[words.indexOf(name) + 1] : '');
const upstream = new URL(process.argv[2]);
const day = 86400;
const scope = 'tools';

async function listen() {
  const server = http.createServer();
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  return { server, origin: `http://127.0.0.1:${server.address().port}` };
}

const auth = await listen();
const api = await listen();
const tenant = option('--tenant');
const issuer = auth.origin + tenant;
const mcp = `${api.origin}/mcp`;
const metadata = `${api.origin}/.well-known/oauth-protected-resource/mcp`;

const log = [];
const note = (what, details = {}) => log.push({ what, ...details });

const provider = new Provider(issuer, {
  scopes: ['openid', 'offline_access', scope],
  clientDefaults: { token_endpoint_auth_method: 'none' },
  pkce: { required: () => true },
  cookies: { keys: ['for tests'] },
  ttl: { AccessToken: 3600, AuthorizationCode: 60, Grant: day, Interaction: 600, RefreshToken: day, Session: day },
  rotateRefreshToken: () => true,
  issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  features: {
    devInteractions: { enabled: true },
    revocation: { enabled: true },
    registration: { enabled: !words.includes('--no-registration') },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => false,
      getResourceServerInfo(_, resource) {
        if (resource !== mcp) throw new errors.InvalidTarget('no such resource');
        return { scope, audience: mcp, accessTokenFormat: 'opaque', accessTokenTTL: 3600 };
      },
    },
  },
});

const tokens = { access: new Set(), refresh: new Set() };
const clients = new Set();
const params = (ctx) => ctx.oidc?.params ?? {};
const listeners = {
  'access_token.saved': (token) => tokens.access.add(token),
  'refresh_token.saved': (token) => tokens.refresh.add(token),
  'registration_create.success': (_, client) => {
    clients.add(client.clientId);
    note('registered', { name: client.clientName, method: client.tokenEndpointAuthMethod, type: client.applicationType, grants: client.grantTypes.join(' '), redirect: client.redirectUris.join(' ') });
  },
  'authorization.success': (ctx) => note('authorized', { resource: params(ctx).resource, scope: params(ctx).scope, redirect: params(ctx).redirect_uri }),
  'authorization.error': (ctx, fault) => note('not authorized', { fault: fault.error }),
  'grant.success': (ctx) => note('granted', { grant: params(ctx).grant_type, resource: params(ctx).resource }),
  'grant.error': (ctx, fault) => note('not granted', { grant: params(ctx).grant_type, fault: fault.error }),
  'grant.revoked': () => note('reused'),
  'revocation.success': () => note('revoked'),
  server_error: (_, fault) => note('broken', { fault: String(fault) }),
};
for (const [event, act] of Object.entries(listeners)) provider.on(event, act);

// An issuer with a path has its metadata under the well-known name followed by the path (RFC 8414, section 3.1); all else is below the path.
const answer = provider.callback();
auth.server.on('request', (req, res) => {
  const known = ['oauth-authorization-server', 'openid-configuration'].map((name) => `/.well-known/${name}`);
  let path = req.url;
  if (tenant) {
    if (known.some((name) => path === name + tenant)) path = `${tenant}${known[1]}`;
    if (!path.startsWith(`${tenant}/`)) return res.writeHead(404).end();
    req.originalUrl = path;
    req.url = path.slice(tenant.length);
  }
  return answer(req, res);
});

const json = (res, status, body, headers = {}) => res.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body));

async function drop(...kinds) {
  for (const kind of kinds) {
    for (const token of tokens[kind]) await token.destroy();
    tokens[kind].clear();
  }
}

const steps = {
  '/control/expire': () => drop('access'),
  '/control/revoke': () => drop('access', 'refresh'),
  '/control/forget': async () => {
    for (const id of clients) await provider.Client.adapter.destroy(id);
    clients.clear();
  },
};

async function known(header = '') {
  const [, given] = /^bearer (\S+)$/i.exec(header) ?? [];
  const token = given && (await provider.AccessToken.find(given));
  return Boolean(token?.isValid && token.aud === mcp);
}

api.server.on('request', async (req, res) => {
  if (req.url === '/control') return json(res, 200, log);
  if (req.method === 'POST' && steps[req.url]) {
    await steps[req.url]();
    return json(res, 200, {});
  }
  if (req.url === new URL(metadata).pathname) return json(res, 200, { resource: mcp, authorization_servers: [issuer], scopes_supported: [scope] });
  if (req.url !== '/mcp') return json(res, 404, {});
  if (!(await known(req.headers.authorization))) {
    note('challenged', { token: Boolean(req.headers.authorization) });
    req.resume();
    const fault = req.headers.authorization ? 'error="invalid_token", ' : '';
    return json(res, 401, {}, { 'WWW-Authenticate': `Bearer ${fault}${words.includes('--plain-challenge') ? 'realm="mcp"' : `resource_metadata="${metadata}"`}` });
  }
  const { authorization, ...headers } = req.headers;
  const on = http.request(upstream, { method: req.method, headers: { ...headers, host: upstream.host } }, (reply) => reply.pipe(res.writeHead(reply.statusCode, reply.headers)));
  on.on('error', () => res.destroy());
  res.on('close', () => on.destroy());
  return req.pipe(on);
});

process.on('SIGTERM', () => process.exit(0));
console.log(JSON.stringify({ mcp, issuer, control: `${api.origin}/control` }));
