import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startServer } from '../support/server.ts'
import { asJson, runCases } from './run-cases.mjs'

const CASES = join(import.meta.dirname, 'cases/builtins.mjs')
const RUNNER = readFileSync(join(import.meta.dirname, 'run-cases.mjs'), 'utf8')

t.test('built-in modules give in a function what they give in Node.js', async (t) => {
  const server = await startServer(t)
  await server.deploy('builtins', {
    'cases.mjs': readFileSync(CASES, 'utf8'),
    'run-cases.mjs': RUNNER,
    'index.ts':
      "import { cases } from './cases.mjs'\nimport { asJson, runCases } from './run-cases.mjs'\nexport default async () => new Response(asJson(await runCases(cases)))\n",
  })
  const { cases } = (await import(CASES)) as { cases: Readonly<Record<string, () => unknown>> }
  const expected = JSON.parse(asJson(await runCases(cases))) as Record<string, unknown>
  const response = await server.get('/builtins/')
  const text = await response.text()
  t.equal(response.status, 200, text)
  const found = JSON.parse(text) as Record<string, unknown>
  for (const name of Object.keys(cases)) t.same(found[name], expected[name], name)
})
