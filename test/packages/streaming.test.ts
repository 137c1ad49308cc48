/**
 * Packages that stream, as they are. What comes next is released when the client has seen what came before: if anything on the
 * way keeps something back, the test does not end.
 */
import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { startServer, until } from '../support/server.ts'
import { installPackages } from '../../bench/src/lib/installed-packages.ts'
import { startModels } from './models.ts'
import { readerOf, type BodyReader } from './reader.ts'

const TOKENS = ['Käse', ' comes', ' in', '\n\n', 'wheels', ' 🧀', ' done']
const ALL = TOKENS.join('')
/** Functions, with the ways in which each gives its client what a model says, and how that ends; `lines` is JSON. */
const MODELS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  openai: { chat: ALL, events: `${ALL}|${ALL}`, lines: '', responses: `${ALL}|${ALL}` },
  anthropic: { messages: `${ALL}|end_turn`, events: `${ALL}|${ALL}`, lines: '' },
}

// They are installed first.
t.setTimeout(600_000)

t.test('packages that stream', { timeout: 600_000 }, async (t) => {
  // In the short form those that the repository has anyway.
  const folder = join(IS_WHOLE ? installPackages() : t.testdir(), 'streaming')
  mkdirSync(folder, { recursive: true })
  cpSync(join(import.meta.dirname, 'streaming'), folder, { recursive: true })
  const server = await startServer(t, ['--allow-egress', '127.0.0.0/8', '--max-bundle-bytes', '33554432'])
  const deploy = async (name: string): Promise<void> => {
    await server.json('deploy', join(folder, `${name}.mjs`), '--name', name, '--timeout-ms', '60000', '--cpu-ms', '10000')
  }
  const open = async (path: string): Promise<{ reader: BodyReader; leave(): void }> => {
    const client = new AbortController()
    const reader = readerOf(await server.get(path, { signal: client.signal }))
    return { reader, leave: () => client.abort() }
  }

  await t.test('what Hono streams comes event by event', async (t) => {
    await deploy('hono')
    const send = (body: string): Promise<Response> => server.get('/hono/send', { method: 'POST', body })
    const seen = async (): Promise<object> => (await (await server.get('/hono/seen')).json()) as object
    const response = await server.get('/hono/events')
    t.equal(response.headers.get('content-type'), 'text/event-stream')
    const reader = readerOf(response)
    const texts = Array.from({ length: 20 }, (_, at) => `event: tick\ndata: number ${at}\nid: ${at}\n\n`)
    for (const [at, text] of texts.entries()) {
      await send(`number ${at}`)
      await reader.until(text)
    }
    await send('')
    t.equal(await reader.all(), texts.join(''))

    const left = await open('/hono/events')
    await send('one')
    await left.reader.until('data: one\n')
    left.leave()
    await until(async () => JSON.stringify(await seen()) === '{"aborted":1,"signaled":1,"failed":[]}')
    t.pass('a client that leaves aborts the stream')
    // Ends the callback of who left.
    await send('unheard')

    const failed = await open('/hono/events')
    await send('throw')
    t.equal(await failed.reader.all(), 'event: error\ndata: thrown on purpose\n\n')
    t.match(await seen(), { aborted: 1, failed: ['thrown on purpose'] })

    const plain = await open('/hono/text')
    for (const text of ['some', ' ', 'text']) {
      await send(text)
      await plain.reader.until(text)
    }
    await send('')
    t.equal(await plain.reader.all(), 'some text')
  })

  if (!IS_WHOLE) return void t.pass('npm run test:packages tries the others')

  for (const [name, ways] of Object.entries(MODELS)) {
    await t.test(`what a model says comes token by token through ${name}`, async (t) => {
      const models = await startModels(t)
      await deploy(name)
      for (const [way, whole] of Object.entries(ways)) {
        const path = `/${name}/${way}?upstream=${encodeURIComponent(models.url)}`
        const opening = open(path)
        const answer = await models.asked()
        for (const token of TOKENS) {
          answer.say(token)
          await (await opening).reader.until(way === 'lines' ? JSON.stringify(token).slice(1, -1) : token)
        }
        answer.end()
        const text = await (await opening).reader.all()
        if (way === 'lines')
          t.ok(
            text
              .split('\n')
              .slice(0, -1)
              .every((line) => typeof JSON.parse(line) === 'object'),
          )
        else t.equal(text, whole, way)

        const leaving = open(path)
        const unheard = await models.asked()
        unheard.say('one')
        const { reader, leave } = await leaving
        await reader.until('one')
        leave()
        await unheard.left
        t.pass(`a client that leaves ${way} ends what the model says`)

        const breaking = open(path)
        const broken = await models.asked()
        broken.say('one')
        await (await breaking).reader.until('one')
        broken.breakOff()
        await t.rejects((await breaking).reader.all(), `a model that breaks off breaks ${way} off`)
      }
    })
  }

  await t.test('what React renders comes as it is ready', async (t) => {
    await deploy('react')
    const come = (name: string): Promise<Response> => server.get(`/react/come?name=${name}`)
    const page = await open('/react/')
    await page.reader.until('waits for second')
    t.match(page.reader.came(), /^<!DOCTYPE html><html>.*<h1>the shell<\/h1>.*waits for first/)
    t.notMatch(page.reader.came(), 'came')
    await come('second')
    await page.reader.until('<p>second came</p>')
    t.notMatch(page.reader.came(), 'first came')
    await come('first')
    await page.reader.until('<p>first came</p>')
    t.match(await page.reader.all(), /<\/html>/)

    const whole = open('/react/ready')
    await until(async () => {
      await Promise.all([come('first'), come('second')])
      return Promise.race([whole, nextTurn()])
    })
    t.match(await (await whole).reader.all(), /<p>first came<\/p>.*<p>second came<\/p>/)

    const left = await open('/react/')
    await left.reader.until('waits for second')
    left.leave()
    await until(async () => (await (await server.get('/react/seen')).text()).includes('AbortError'))
    t.pass('a client that leaves ends the rendering')
  })
})
