// What the official conformance suite starts as a client: `conformance_client.mjs LUMEN URL` does what the scenario asks for,
// over `LUMEN bridge --url URL` on stdio. The SDK's part is that of its own transport; all HTTP is the bridge's.
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { Client as Client2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio'

const [lumen, url] = process.argv.slice(2)
const scenario = process.env.MCP_CONFORMANCE_SCENARIO
const version = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}')
const bridge = { command: lumen, args: ['bridge', '--url', url], env: process.env, stderr: 'inherit' }
const info = { name: 'rig-conformance', version: '1' }
const capabilities = { elicitation: { form: { applyDefaults: true } } }
const elicited = async () => ({ action: 'accept', content: {} })

const isModern = version === '2026-07-28'
const client = isModern
  ? new Client2(info, { capabilities, versionNegotiation: { mode: { pin: version } } })
  : new Client1(info, { capabilities })
client.setRequestHandler(isModern ? 'elicitation/create' : ElicitRequestSchema, elicited)
await client.connect(isModern ? new Stdio2(bridge) : new Stdio1(bridge))

const { tools } = await client.listTools()
const echoed = tools.find(({ name }) => name !== 'json_schema_echo')?.inputSchema
const calls = {
  tools_call: [{ name: 'add_numbers', arguments: { a: 5, b: 3 } }],
  'http-custom-headers': context.toolCalls,
  'http-invalid-tool-headers': [{ name: 'valid_tool', arguments: { region: 'x' } }],
  'json-schema-2020-12-preservation': [{ name: 'json_schema_echo', arguments: { schema: echoed } }],
}
for (const call of calls[scenario] ?? tools.map(({ name }) => ({ name, arguments: {} }))) {
  await client.callTool(call).catch((error) => console.error(`${call.name}: ${error.message}`))
}
const has = client.getServerCapabilities() ?? {}
if (has.resources) {
  for (const { uri } of (await client.listResources()).resources) await client.readResource({ uri })
}
if (has.prompts) {
  for (const { name } of (await client.listPrompts()).prompts) await client.getPrompt({ name })
}
await client.close()
