// A client on the TypeScript client 2.x, which finds out by itself whether the server is of the stateless or of the
// older revisions: `ts2_client.mjs COMMAND ARGS..` starts the server, or `ts2_client.mjs URL` reaches it, and prints what
// it found.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { visit } from './visit.mjs'

const [command, ...args] = process.argv.slice(2)
await visit(
  new Client({ name: 'rig-ts2', version: '1' }, { versionNegotiation: { mode: 'auto' } }),
  command.startsWith('http')
    ? new StreamableHTTPClientTransport(new URL(command))
    : new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' }),
)
