// A client on the TypeScript SDK 1.x: `ts1_client.mjs COMMAND ARGS..` starts the server, or `ts1_client.mjs URL` reaches
// it, and prints what it found.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { visit } from './visit.mjs'

const [command, ...args] = process.argv.slice(2)
await visit(
  new Client({ name: 'rig-ts1', version: '1' }),
  command.startsWith('http')
    ? new StreamableHTTPClientTransport(new URL(command))
    : new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' }),
)
