// A client on the TypeScript client 2.x: `ts2_client.mjs MODE COMMAND ARGS..` starts the server, or `ts2_client.mjs MODE
// URL` reaches it, and prints what it found. MODE is `legacy`, or `auto` to find out whether the server is of the stateless
// or of the older revisions.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { visit } from './visit.mjs'

const [mode, command, ...args] = process.argv.slice(2)
await visit(
  new Client({ name: 'rig-ts2', version: '1' }, { versionNegotiation: { mode } }),
  command.startsWith('http')
    ? new StreamableHTTPClientTransport(new URL(command))
    : new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' }),
)
