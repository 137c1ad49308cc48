import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startServer } from '../support/server.ts'
import { asJson, type Cases, runCases } from './run-cases.ts'

const CASES = join(import.meta.dirname, 'cases/builtins.mjs')
const RUNNER = readFileSync(join(import.meta.dirname, 'run-cases.ts'), 'utf8')

t.test('built-in modules give in a function what they give in Node.js', async (t) => {
  const server = await startServer(t)
  await server.deploy('builtins', {
    'cases.mjs': readFileSync(CASES, 'utf8'),
    'run-cases.ts': RUNNER,
    'index.ts':
      "import { cases } from './cases.mjs'\nimport { asJson, runCases } from './run-cases.ts'\nexport default async () => new Response(asJson(await runCases(cases)))\n",
  })
  const { cases } = (await import(CASES)) as { cases: Cases }
  const expected = JSON.parse(asJson(await runCases(cases))) as Record<string, unknown>
  const response = await server.get('/functions/builtins')
  const text = await response.text()
  t.equal(response.status, 200, text)
  const found = JSON.parse(text) as Record<string, unknown>
  for (const name of Object.keys(cases)) t.same(found[name], expected[name], name)
})
