import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CarpoolError } from '@carpool/core'
import t from 'tap'
import { bundleFunction, checkFunctionConfig } from '../src/index.ts'
import { refusalOf } from './support/refusal.ts'

const HANDLER = 'export const handler = 1'

function problemWith(value: unknown): string {
  try {
    checkFunctionConfig(value, 'carpool.config.ts')
    return 'none'
  } catch (error) {
    return error instanceof CarpoolError && error.code === 'invalid-config' ? error.message : String(error)
  }
}

t.test('a whole config passes, without what is undefined', (t) => {
  const config = {
    name: 'a-1',
    entry: 'src/a.ts',
    handler: 'a.b',
    memoryMb: 8,
    cpuMs: 5,
    timeoutMs: 900_000,
    streamMs: 0,
    idleMs: 86_400_000,
    concurrency: 1,
    env: { A_1: '' },
    egress: ['api.example.com'],
  }
  t.same(checkFunctionConfig({ ...config }, 'x'), config)
  t.same(checkFunctionConfig({ egress: [] }, 'x'), { egress: [] })
  t.same(Object.keys(checkFunctionConfig({ name: undefined }, 'x')), [])
  t.end()
})

t.test('an unknown setting is refused with the nearest known one', (t) => {
  t.equal(problemWith({ memory: 64 }), 'carpool.config.ts: there is no setting "memory"; did you mean memoryMb?')
  t.equal(problemWith({ timeoutMS: 64 }), 'carpool.config.ts: there is no setting "timeoutMS"; did you mean timeoutMs?')
  t.match(
    problemWith({ zzzzzz: 1 }),
    'there are name, entry, handler, memoryMb, cpuMs, timeoutMs, streamMs, idleMs, concurrency, env, egress',
  )
  t.match(problemWith({ ['__proto__']: 1, constructor: 1 }), 'there is no setting')
  t.end()
})

t.test('types and ranges are named', (t) => {
  t.equal(problemWith({ memoryMb: 7 }), 'carpool.config.ts: memoryMb must be a whole number from 8 to 4096 MiB, not 7.')
  t.equal(
    problemWith({ timeoutMs: '10' }),
    'carpool.config.ts: timeoutMs must be a whole number from 10 to 900000 ms, not a text.',
  )
  t.equal(
    problemWith({ concurrency: 1.5 }),
    'carpool.config.ts: concurrency must be a whole number from 1 to 100000 invocations, not 1.5.',
  )
  for (const limit of ['streamMs', 'idleMs']) {
    for (const value of [-1, 86_400_001]) {
      const range = 'a whole number from 0 to 86400000 ms'
      t.equal(problemWith({ [limit]: value }), `carpool.config.ts: ${limit} must be ${range}, not ${value}.`)
    }
  }
  t.equal(problemWith({ entry: '' }), 'carpool.config.ts: entry must be text that is not empty, not an empty text.')
  t.match(problemWith({ name: 'No Name' }), 'carpool.config.ts: name is not valid: "No Name" is no function name')
  t.match(problemWith({ name: 1 }), 'name must be text, not 1.')
  t.match(problemWith({ env: { '1A': 'x' } }), 'env holds "1A"')
  t.match(problemWith({ env: { A: 1 } }), 'env holds A, which must be text, not 1.')
  t.match(problemWith({ env: ['A'] }), 'env must be an object of texts by name, not an array.')
  t.match(problemWith({ egress: 'a.example' }), 'egress must be an array of texts, not a text.')
  t.match(problemWith({ egress: ['a.example', 5] }), 'egress must hold texts that are not empty; entry 2 is 5.')
  t.match(problemWith({ egress: [' '] }), 'egress must hold texts that are not empty; entry 1 is an empty text.')
  t.equal(problemWith(null), 'carpool.config.ts: the config must be an object, not null.')
  t.equal(problemWith([]), 'carpool.config.ts: the config must be an object, not an array.')
  t.end()
})

t.test('a config is read from TypeScript, JavaScript and JSON, and gives the name', async (t) => {
  const configs = {
    'carpool.config.ts': "const name: string = 'a'\nexport default { name }",
    'carpool.config.js': "export default { name: 'a' }",
    'carpool.config.mjs': "export default { name: 'a' }",
    'carpool.config.json': '{ "$schema": "x", "name": "a" }',
  }
  for (const [file, text] of Object.entries(configs)) {
    const folder = t.testdir({ 'index.js': HANDLER, [file]: text })
    const { config, suggestedName, inputs } = await bundleFunction(folder)
    t.same({ config, suggestedName }, { config: { name: 'a' }, suggestedName: 'a' }, file)
    t.ok(inputs.includes(join(folder, file)))
  }
})

t.test('a config that changes is read anew', async (t) => {
  const folder = t.testdir({ 'index.js': HANDLER, 'carpool.config.mjs': 'export default { memoryMb: 64 }' })
  t.same((await bundleFunction(folder)).config, { memoryMb: 64 })
  await writeFile(join(folder, 'carpool.config.mjs'), 'export default { memoryMb: 128 }')
  t.same((await bundleFunction(folder)).config, { memoryMb: 128 })
})

t.test('a config can use the SDK where it is not installed', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'carpool-config-'))
  t.teardown(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'index.js'), HANDLER)
  await writeFile(
    join(folder, 'carpool.config.ts'),
    "import { defineConfig } from '@carpool/sdk'\nexport default defineConfig({ timeoutMs: 50 })",
  )
  t.same((await bundleFunction(folder)).config, { timeoutMs: 50 })
})

t.test('a config that cannot be read is refused with its name', async (t) => {
  const refusalWith = async (files: Record<string, string>): Promise<unknown> =>
    refusalOf(bundleFunction(t.testdir({ 'index.js': HANDLER, ...files })))
  t.match(await refusalWith({ 'carpool.config.json': '{' }), {
    code: 'invalid-config',
    message: /^carpool\.config\.json is no valid JSON/,
  })
  t.match(await refusalWith({ 'carpool.config.mjs': 'throw new Error("no")' }), {
    code: 'invalid-config',
    message: /^carpool\.config\.mjs does not load: Error: no/,
  })
  t.match(await refusalWith({ 'carpool.config.mjs': 'export const a = 1' }), {
    code: 'invalid-config',
    message: /has no default export/,
  })
  t.match(await refusalWith({ 'carpool.config.mjs': '', 'carpool.config.json': '{}' }), {
    code: 'invalid-config',
    message: 'There are carpool.config.mjs and carpool.config.json; keep one of them.',
  })
  t.match(await refusalWith({ 'package.json': '{' }), {
    code: 'invalid-config',
    message: /^package\.json of .* is no valid JSON/,
  })
})
