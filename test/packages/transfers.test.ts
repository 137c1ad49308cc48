/**
 * Apps of Express and Fastify that send and take large bodies as streams, unchanged: what comes of it is what comes of it in
 * Node.js.
 */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, mkdirSync } from 'node:fs'
import { Agent, createServer, request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { startServer, until } from '../support/server.ts'
import { installPackages } from '../../bench/src/lib/installed-packages.ts'
import { startInNode } from './app-in-node.ts'

const MIB = 1024 * 1024
const PART_BYTES = 65_536
const PIECES = 33
const BYTES = PIECES * 254_201
/** What a client does not read for a while: much more than the system takes for connections. */
const LARGE_BYTES = 64 * MIB
const MOST_AHEAD_BYTES = 40 * MIB
const DOWNLOADS: Readonly<Record<string, readonly string[]>> = {
  express: ['download', 'pipeline', 'written'],
  fastify: ['download', 'pipeline', 'written', 'web'],
}

interface Seen {
  readonly bytes: number
  readonly closed: number
  readonly errors: readonly string[]
}

/** As the apps make it. */
function* linesOf(bytes: number): Generator<Buffer> {
  for (let at = 0; at < bytes; at += PART_BYTES) yield Buffer.alloc(Math.min(PART_BYTES, bytes - at), `part ${at / PART_BYTES}\n`)
}

const digest = async (parts: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<string> => {
  const hash = createHash('sha256')
  for await (const part of parts) hash.update(part)
  return hash.digest('hex')
}

const agent = new Agent({ keepAlive: true })

function send(url: string, method: string, headers: Record<string, string> = {}): ClientRequest {
  return httpRequest(url, { method, headers, agent }).on('error', () => {})
}

async function answerOf(request: ClientRequest): Promise<IncomingMessage> {
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response
}

const get = (url: string): Promise<IncomingMessage> => answerOf(send(url, 'GET').end())

async function sendAll(request: ClientRequest, pieces: Iterable<Buffer>): Promise<void> {
  for (const piece of pieces) if (!request.write(piece)) await once(request, 'drain')
  request.end()
}

async function transfer(t: Test, base: string, name: string, upstream: string): Promise<void> {
  const seen = async (): Promise<Seen> => (await (await fetch(`${base}/seen`)).json()) as Seen
  const expected = await digest(linesOf(BYTES))
  const largeHash = await digest(linesOf(LARGE_BYTES))
  const body = Array.from({ length: PIECES }, () => randomBytes(BYTES / PIECES))
  const ofBody = await digest(body)

  for (const path of DOWNLOADS[name]!) {
    const response = await get(`${base}/${path}?bytes=${BYTES}`)
    t.same([response.statusCode, await digest(response)], [200, expected], `/${path} as fast as it goes`)
  }
  const { headers } = (await get(`${base}/download?bytes=16`)).resume()
  t.match(headers, { 'content-disposition': /^attachment; filename="?lines\.txt"?$/ })

  // A slow one: it waits for another call before it reads on.
  for (const path of IS_WHOLE ? DOWNLOADS[name]! : ['download']) {
    const before = (await seen()).bytes
    const response = await get(`${base}/${path}?bytes=${LARGE_BYTES}`)
    let [read, looked, mostAhead] = [0, -MIB, 0]
    const hash = createHash('sha256')
    for await (const part of response as AsyncIterable<Buffer>) {
      hash.update(part)
      read += part.length
      if (read - looked < MIB) continue
      looked = read
      mostAhead = Math.max(mostAhead, (await seen()).bytes - before - read)
    }
    t.equal(hash.digest('hex'), largeHash, `/${path} to a slow reader`)
    t.ok(mostAhead < MOST_AHEAD_BYTES, `it is ahead by ${mostAhead} bytes at most`)
  }

  const left = await get(`${base}/download?bytes=${LARGE_BYTES}`)
  const { closed } = await seen()
  left.destroy()
  await until(async () => (await seen()).closed > closed)
  t.pass('what a client leaves is closed')
  const broken = await get(`${base}/breaks?bytes=${LARGE_BYTES}`)
  await t.rejects(digest(broken), 'a download that breaks is no whole one')

  for (const headers of [{}, { 'content-length': String(BYTES) }]) {
    const upload = send(`${base}/upload`, 'POST', headers)
    const sent = sendAll(upload, body)
    t.match(await digestOf(upload), ofBody, 'an upload')
    await sent
  }
  const slow = send(`${base}/upload`, 'POST')
  for (const piece of body) {
    slow.write(piece)
    await seen()
  }
  slow.end()
  t.match(await digestOf(slow), ofBody, 'an upload that comes bit by bit')
  for (const path of ['/echo', `/through?to=${encodeURIComponent(upstream)}`]) {
    const whole = send(base + path, 'POST')
    const sent = sendAll(whole, body)
    t.equal(await digest(await answerOf(whole)), ofBody, `${path} of all`)
    await sent
    const steps = send(base + path, 'POST')
    let came = ''
    let response: IncomingMessage | undefined
    for (const step of ['one', 'two', 'three', 'four']) {
      steps.write(step)
      response ??= (await answerOf(steps)).setEncoding('utf8').on('data', (text: string) => (came += text))
      while (!came.endsWith(step)) await once(response, 'data')
    }
    steps.end()
    await once(response!, 'end')
    t.equal(came, 'onetwothreefour', `${path} step by step`)
  }
  const cut = send(`${base}/upload`, 'POST')
  cut.write(body[0])
  const { errors } = await seen()
  cut.destroy()
  await until(async () => (await seen()).errors.length > errors.length)
  t.match((await seen()).errors.at(-1), /ECONNRESET|ERR_STREAM_PREMATURE_CLOSE/, 'an upload that breaks off')
}

async function digestOf(upload: ClientRequest): Promise<string> {
  let text = ''
  for await (const part of (await answerOf(upload)).setEncoding('utf8')) text += String(part)
  return (JSON.parse(text) as { hash?: string }).hash ?? text
}

// They are installed first.
t.setTimeout(600_000)

t.test('downloads and uploads of apps', { timeout: 600_000 }, async (t) => {
  const folder = join(IS_WHOLE ? installPackages() : t.testdir(), 'transfers')
  mkdirSync(folder, { recursive: true })
  cpSync(join(import.meta.dirname, 'transfers'), folder, { recursive: true })
  const echo = createServer((request, response) => void request.pipe(response))
  await once(echo.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    agent.destroy()
    echo.closeAllConnections()
    echo.close()
  })
  const upstream = `http://127.0.0.1:${(echo.address() as AddressInfo).port}/`
  const server = await startServer(t, ['--allow-egress', '127.0.0.0/8', '--max-bundle-bytes', '33554432'])
  for (const name of IS_WHOLE ? Object.keys(DOWNLOADS) : ['express']) {
    const file = join(folder, `${name}.mjs`)
    if (IS_WHOLE) await t.test(`${name} in Node.js`, async (t) => transfer(t, await startInNode(t, file), name, upstream))
    await t.test(`${name} in a function`, async (t) => {
      await server.json('deploy', file, '--name', name, '--cpu-ms', '30000', '--timeout-ms', '60000')
      await transfer(t, `${server.url}/${name}`, name, upstream)
    })
  }
})
