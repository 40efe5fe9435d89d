// A client on the TypeScript SDK 1.x that does with server-everything all that a session can do, beside others that do the
// same: `mux_verbs.mjs MEET NAME COUNT COMMAND ARGS..`. MEET is a folder where COUNT of them wait for each other. Prints what it
// found as canonical JSON.
import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'

const [meet, name, count, command, ...args] = process.argv.slice(2)
const pause = () => new Promise((resolve) => setTimeout(resolve, 20))

async function all(place) {
  mkdirSync(`${meet}/${place}`, { recursive: true })
  writeFileSync(`${meet}/${place}/${name}`, '')
  while (readdirSync(`${meet}/${place}`).length < Number(count)) await pause()
}

// What a server asks while two clients work can be about either, so that takes turns.
async function alone(work) {
  for (;;) {
    try {
      mkdirSync(`${meet}/turn`)
      break
    } catch {
      await pause()
    }
  }
  try {
    return await work()
  } finally {
    rmdirSync(`${meet}/turn`)
  }
}

async function visit() {
  const client = new Client(
    { name: 'rig-verbs', version: '1' },
    { capabilities: { roots: {}, sampling: {}, elicitation: {} } },
  )
  let updates = 0
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///rig', name: 'rig' }] }))
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    model: 'rig',
    role: 'assistant',
    content: { type: 'text', text: `said by ${name}` },
  }))
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'decline' }))
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, () => void updates++)
  await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' }))
  await all('connected')
  const { tools } = await client.listTools()
  const { resources } = await client.listResources()
  const found = { tools: tools.map((tool) => tool.name).sort(), resources: resources.length }
  const call = (tool, given, options) => client.callTool({ name: tool, arguments: given }, undefined, options)
  found.echo = (await call('echo', { message: `${name} – wörtlich – 和` })).content[0].text.replace(name, 'NAME')
  found.sum = (await call('get-sum', { a: 2, b: 3 })).content
  found.progress = []
  const onprogress = ({ progress }) => void found.progress.push(progress)
  found.long = (await call('trigger-long-running-operation', { duration: 1, steps: 4 }, { onprogress })).content
  // The last one comes together with the answer, and may be taken for late.
  found.progress.length = 3
  const abort = new AbortController()
  const stop = { signal: abort.signal, onprogress: () => abort.abort('enough') }
  found.cancelled = await call('trigger-long-running-operation', { duration: 40, steps: 200 }, stop).then(
    () => 'no',
    () => 'yes',
  )
  found.after = (await call('get-sum', { a: 4, b: 5 })).content
  await all('quiet')
  await alone(async () => {
    const said = await call('trigger-sampling-request', { prompt: 'p', maxTokens: 5 })
    found.sampling = JSON.stringify(said.content).includes(`said by ${name}`)
    found.elicitation = (await call('trigger-elicitation-request', {})).content.map(({ text }) => text)
    const [{ uri }] = resources
    await client.subscribeResource({ uri })
    await call('toggle-subscriber-updates', {})
    while (updates === 0) await pause()
    await call('toggle-subscriber-updates', {})
    await client.unsubscribeResource({ uri })
    found.updated = true
  })
  await all('done')
  await client.close()
  return found
}

try {
  console.log(JSON.stringify(await visit(), null, 1))
} catch (error) {
  console.error(`failure: ${error.stack}`)
  if (existsSync(`${meet}/turn`)) rmdirSync(`${meet}/turn`)
  process.exit(1)
}
