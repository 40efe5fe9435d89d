// What both TypeScript clients do with a server: connect, list the tools, call one, print all of it as canonical
// JSON on stdout and the milliseconds to the first answer on stderr, or there as `failure: ...` why it did not work.
import { readFileSync } from 'node:fs'

const calls = JSON.parse(readFileSync(new URL('calls.json', import.meta.url), 'utf8'))

const sorted = (_key, value) =>
  value && typeof value === 'object' && !Array.isArray(value)
    ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, value[key]]))
    : value

async function found(client, transport) {
  const start = performance.now()
  await client.connect(transport)
  console.error(`first answer after ${Math.round(performance.now() - start)} ms`)
  const { tools } = await client.listTools()
  tools.sort((a, b) => (a.name < b.name ? -1 : 1))
  const call = calls.find(({ name }) => tools.some((tool) => tool.name === name))
  if (!call) throw new Error('the server has none of the tools that the rig calls')
  const result = await client.callTool({ name: call.name, arguments: call.arguments })
  if (!JSON.stringify(result.content).includes(call.answer)) throw new Error(`not the answer: ${JSON.stringify(result)}`)
  const all = {
    serverInfo: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    instructions: client.getInstructions(),
    tools,
    call: result,
  }
  await client.close()
  return all
}

export async function visit(client, transport) {
  try {
    console.log(JSON.stringify(await found(client, transport), sorted, 1))
  } catch (error) {
    console.error(`failure: ${error.name} ${error.code ?? ''} ${error.message}`)
    process.exit(1)
  }
}
