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

const server = await startServer(t)

t.test('built-in modules give in a function what they give in Node.js', async (t) => {
  const files = { 'cases.mjs': read('cases/builtins.mjs'), 'run-cases.mjs': read('run-cases.mjs'), 'index.mjs': INDEX }
  const expected = JSON.parse(await inNode(join(server.write(files), 'index.mjs'))) as Record<string, unknown>
  await server.deploy('builtins', files)
  const response = await server.get('/builtins/')
  const text = await response.text()
  t.equal(response.status, 200, text)
  const found = JSON.parse(text) as Record<string, unknown>
  for (const [name, value] of Object.entries(expected)) t.same(found[name], value, name)
})

t.test('process hears what nobody caught: in timers, ticks and promises', async (t) => {
  await server.deploy('hears', {
    'index.mjs': `const heard = []
      process.on('uncaughtException', (error, origin) => heard.push([origin, error.message]))
      process.once('unhandledRejection', (reason, promise) => heard.push(['unhandledRejection', reason.message, promise instanceof Promise]))
      export default {
        async fetch() {
          setTimeout(() => { throw new Error('in a timer') })
          process.nextTick(() => { throw new Error('in a tick') })
          Promise.reject(new Error('first rejected'))
          await new Promise((resolve) => setTimeout(resolve, 5))
          Promise.reject(new Error('then rejected'))
          await new Promise((resolve) => setTimeout(resolve, 5))
          return Response.json(heard)
        },
      }`,
  })
  t.same(await (await server.get('/hears')).json(), [
    ['uncaughtException', 'in a tick'],
    ['unhandledRejection', 'first rejected', true],
    ['uncaughtException', 'in a timer'],
    ['unhandledRejection', 'then rejected'],
  ])
})
