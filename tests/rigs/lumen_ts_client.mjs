// A client on the TypeScript SDK 1.x over the stdio transport of npm @gonzalomonzonc/mcp-transport, which asks for LUMEN:
// `lumen_ts_client.mjs COMMAND ARGS..` starts the server and prints what it found.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { LumenStdioTransport } from '@gonzalomonzonc/mcp-transport'
import { visit } from './visit.mjs'

const [command, ...args] = process.argv.slice(2)
const minutes = 60_000
await visit(
  new Client({ name: 'rig-ts1', version: '1' }),
  new LumenStdioTransport({ command, args, probeTimeoutMs: 10 * minutes }),
)
process.exit()
