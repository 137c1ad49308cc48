import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startServer } from '../support/server.ts'
import { inNode } from './in-node.ts'

const read = (file: string): string => readFileSync(join(import.meta.dirname, file), 'utf8')

const INDEX = `
import { cases } from './cases.mjs'
import { asJson, runCases } from './run-cases.mjs'
export const run = async () => asJson(await runCases(cases))
export default async () => new Response(await run())
`

t.test('built-in modules give in a function what they give in Node.js', async (t) => {
  const server = await startServer(t)
  const files = { 'cases.mjs': read('cases/builtins.mjs'), 'run-cases.mjs': read('run-cases.mjs'), 'index.mjs': INDEX }
  const expected = JSON.parse(await inNode(join(server.write(files), 'index.mjs'))) as Record<string, unknown>
  await server.deploy('builtins', files)
  const response = await server.get('/builtins/')
  const text = await response.text()
  t.equal(response.status, 200, text)
  const found = JSON.parse(text) as Record<string, unknown>
  for (const [name, value] of Object.entries(expected)) t.same(found[name], value, name)
})
