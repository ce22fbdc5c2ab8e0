// A client made with the official TypeScript SDK: node sdk-client.mjs v1|v2 URL KEY lists the tools and reads note.txt.
const [generation, url, key] = process.argv.slice(2);
const v1 = generation === 'v1';
const { Client } = await import(v1 ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client');
const { StreamableHTTPClientTransport } = await import(v1 ? '@modelcontextprotocol/sdk/client/streamableHttp.js' : '@modelcontextprotocol/client');
const client = new Client({ name: 'peer', version: '1' }, v1 ? {} : { versionNegotiation: { mode: 'auto' } });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${key}` } } }));
const { tools } = await client.listTools();
const result = await client.callTool({ name: 'file_read', arguments: { path: 'note.txt' } });
console.log(JSON.stringify({ tools: tools.map((t) => t.name), result }));
await client.close();
