// A client made with the official TypeScript SDK: node sdk-client.mjs v1|v2 URL KEY, or v1|v2 COMMAND ARGS…, lists the tools and reads note.txt.
const [generation, target, ...rest] = process.argv.slice(2);
const v1 = generation === 'v1';
const { Client } = await import(v1 ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client');
async function transport() {
  if (!target.startsWith('http://')) {
    const { StdioClientTransport } = await import(v1 ? '@modelcontextprotocol/sdk/client/stdio.js' : '@modelcontextprotocol/client/stdio');
    return new StdioClientTransport({ command: target, args: rest, env: process.env });
  }
  const { StreamableHTTPClientTransport } = await import(v1 ? '@modelcontextprotocol/sdk/client/streamableHttp.js' : '@modelcontextprotocol/client');
  return new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers: { Authorization: `Bearer ${rest[0]}` } } });
}
const client = new Client({ name: 'peer', version: '1' }, v1 ? {} : { versionNegotiation: { mode: 'auto' } });
await client.connect(await transport());
const { tools } = await client.listTools();
const result = await client.callTool({ name: 'file_read', arguments: { path: 'note.txt' } });
console.log(JSON.stringify({ tools: tools.map((t) => t.name), result }));
await client.close();
