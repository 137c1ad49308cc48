/** Many invocations share one host process, each function in its own isolate. */
import t from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { startServer } from '../support/server.ts'

const SLEEPER = `
  const instance = crypto.randomUUID()
  export default {
    async fetch(request) {
      await new Promise((resolve) => setTimeout(resolve, 1000))
      return Response.json({ instance })
    }
  }`

const CALLS = IS_WHOLE ? 1000 : 400

/** Answers no call until so many are there. */
const GATHERING = `
  const instance = crypto.randomUUID()
  const held = []
  export default {
    async fetch(request) {
      await new Promise((resolve) => {
        held.push(resolve)
        if (held.length === ${CALLS}) for (const release of held) release()
      })
      return Response.json({ instance })
    }
  }`

const server = await startServer(t)

for (const [name, title, code] of [
  ['sleeping', `${CALLS} calls that sleep a second ride in one isolate of one host process`, SLEEPER],
  ['gathering', `${CALLS} calls are under way together in one isolate of one host process`, GATHERING],
] as const) {
  t.test(title, async (t) => {
    await server.deploy(name, code)
    const before = await server.info()
    const answers = await Promise.all(
      Array.from({ length: CALLS }, async () => {
        const response = await server.get(`/${name}/`)
        return { status: response.status, ...((await response.json()) as { instance?: string }) }
      }),
    )
    const after = await server.info()
    t.strictSame(new Set(answers.map(({ status }) => status)), new Set([200]))
    t.equal(new Set(answers.map(({ instance }) => instance)).size, 1)
    t.strictSame(
      after.hosts.map(({ pid }) => pid),
      before.hosts.map(({ pid }) => pid),
    )
    t.equal(after.hosts.length, 1)
  })
}

t.test('functions in one host do not see each other, nor what another left in the globals', async (t) => {
  await server.deploy(
    'left',
    `export default { fetch() { globalThis.secret = 'left'; Array.prototype.evil = 1; return new Response('set') } }`,
  )
  await server.deploy('right', `export default { fetch() { return Response.json([typeof secret, typeof [].evil]) } }`)
  await server.get('/left/')
  t.strictSame(await (await server.get('/right/')).json(), ['undefined', 'undefined'])
  t.equal((await server.info()).hosts.length, 1)
})

t.test('with more functions than isolates, the evicted ones come back by themselves', async (t) => {
  const server = await startServer(t, ['--max-isolates', '2'])
  for (const name of ['a', 'b', 'c']) {
    await server.deploy(name, `let calls = 0; export default { fetch() { return new Response('${name} ' + ++calls) } }`)
  }
  for (const name of ['a', 'b', 'c', 'a']) t.equal(await (await server.get(`/${name}/`)).text(), `${name} 1`)
  t.equal(await (await server.get('/a/')).text(), 'a 2')
})

t.test('a function has a limit of its own', async (t) => {
  await server.deploy('narrow', {
    'carpool.config.json': JSON.stringify({ concurrency: 2 }),
    'index.js': `
      const held = []
      export default {
        fetch(request) {
          if (new URL(request.url).pathname === '/go') { for (const go of held) go(); return new Response('gone') }
          return new Promise((resolve) => held.push(() => resolve(new Response('ok'))))
        }
      }`,
  })
  const [one, two, three] = [server.get('/narrow/'), server.get('/narrow/'), server.get('/narrow/')]
  const refused = await Promise.race([one, two, three])
  t.equal(refused?.status, 429)
  t.match(await refused?.json(), { code: 'too-many-requests', detail: /limit of 2/ })
  t.ok(refused?.headers.get('retry-after'))
})
