// A server with one tool over stdio, on the TypeScript server 2.x, wired in either of its two ways: `ts2_server.mjs serve` has the
// package serve it, which speaks the stateless and the older revisions; `ts2_server.mjs connect` connects the transport by
// hand, which speaks the older ones only.
import { McpServer } from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import * as z from 'zod'

function make() {
  const server = new McpServer({ name: 'rig-ts2', version: '1' })
  const inputSchema = z.object({ a: z.number(), b: z.number() })
  const description = 'Adds two numbers, the sum is – wörtlich – 和.'
  server.registerTool('sum', { description, inputSchema }, async ({ a, b }) => ({
    content: [{ type: 'text', text: String(a + b) }],
  }))
  return server
}

if (process.argv[2] === 'serve') serveStdio(make)
else await make().connect(new StdioServerTransport())
