// What both TypeScript clients do with a server: connect, list the tools, call one, print all of it as canonical
// JSON on stdout and the milliseconds to the first answer on stderr.

const calls = [
  { name: 'sum', arguments: { a: 2, b: 3 } },
  { name: 'get-sum', arguments: { a: 2, b: 3 } },
]

const sorted = (_key, value) =>
  value && typeof value === 'object' && !Array.isArray(value)
    ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, value[key]]))
    : value

export async function visit(client, transport) {
  const start = performance.now()
  await client.connect(transport)
  console.error(`first answer after ${Math.round(performance.now() - start)} ms`)
  const { tools } = await client.listTools()
  tools.sort((a, b) => (a.name < b.name ? -1 : 1))
  const call = calls.find(({ name }) => tools.some((tool) => tool.name === name))
  if (!call) throw new Error('the server has neither of the tools that the rig calls')
  const result = await client.callTool(call)
  if (!JSON.stringify(result.content).includes('5')) throw new Error(`2 + 3 is ${JSON.stringify(result)}`)
  const found = {
    serverInfo: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    tools,
    call: result,
  }
  await client.close()
  console.log(JSON.stringify(found, sorted, 1))
}
