// A client on the TypeScript SDK 1.x: `ts1_client.mjs COMMAND ARGS..` starts the server and prints what it found.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { visit } from './visit.mjs'

const [command, ...args] = process.argv.slice(2)
await visit(
  new Client({ name: 'rig-ts1', version: '1' }),
  new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' }),
)
