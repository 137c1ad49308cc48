import { problemOfOutcome } from '@carpool/core'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startControlPlane, TOKEN } from './support/control-plane.ts'
import { runCommand } from './support/run-command.ts'

async function start(t: Test) {
  const plane = await startControlPlane(t)
  const env = { CARPOOL_URL: plane.url, CARPOOL_TOKEN: TOKEN }
  const invoke = (argv: readonly string[], stdin = '') => runCommand(['invoke', 'hello', ...argv], { env, stdin })
  const lastRequest = () => plane.invocations.at(-1)
  return { plane, invoke, lastRequest }
}

const base64 = (text: string) => Buffer.from(text).toString('base64')

t.test('without options it is a GET of the root', async (t) => {
  const { plane, invoke, lastRequest } = await start(t)
  plane.answer = { ...plane.answer, bodyBase64: base64('hi') }
  t.match(await invoke([]), { exitCode: 0, stdout: 'hi', stderr: `Calling hello at ${plane.url}\n` })
  t.strictSame(lastRequest(), { method: 'GET', path: '/', headers: [], bodyBase64: '' })
})

t.test('method, path and headers are sent as they are given', async (t) => {
  const { invoke, lastRequest } = await start(t)
  await invoke(['--method', 'put', '--path', 'a/b?c=d', '--header', 'X-One: 1', '--header', 'x-two:  2: b '])
  t.strictSame(lastRequest(), {
    method: 'PUT',
    path: '/a/b?c=d',
    headers: [
      ['x-one', '1'],
      ['x-two', '2: b'],
    ],
    bodyBase64: '',
  })
})

t.test('data comes from the command line, a file or stdin, and makes it a POST', async (t) => {
  const { invoke, lastRequest } = await start(t)
  const file = join(t.testdir({ 'data.json': '{"a":1}' }), 'data.json')
  const sent = { method: 'POST', headers: [['content-type', 'application/json']], bodyBase64: base64('{"a":1}') }
  await invoke(['-d', '{"a":1}'])
  t.match(lastRequest(), sent)
  await invoke(['-d', `@${file}`])
  t.match(lastRequest(), sent)
  await invoke(['-d', '-'], '{"a":1}')
  t.match(lastRequest(), sent)
  await invoke(['-d', '{"a":1}', '--method', 'PATCH'])
  t.match(lastRequest(), { method: 'PATCH' })
})

t.test('the content type follows the data, unless a header says it', async (t) => {
  const { invoke, lastRequest } = await start(t)
  const file = join(t.testdir({ bytes: Buffer.from([0xff, 0xfe, 0]) }), 'bytes')
  const typeOf = async (...argv: string[]) => {
    await invoke(argv)
    return lastRequest()?.headers
  }
  t.strictSame(await typeOf('-d', 'plain'), [['content-type', 'text/plain;charset=utf-8']])
  t.strictSame(await typeOf('-d', `@${file}`), [['content-type', 'application/octet-stream']])
  t.strictSame(await typeOf('-d', '1', '--header', 'Content-Type: text/csv'), [['content-type', 'text/csv']])
  t.strictSame(await typeOf('-d', ''), [])
})

t.test('the body goes to stdout byte for byte', async (t) => {
  const { plane, invoke } = await start(t)
  const bytes = Buffer.from([0, 0xff, 0x0a, 0xfe])
  plane.answer = { ...plane.answer, bodyBase64: bytes.toString('base64') }
  t.strictSame((await invoke([])).stdoutBytes, bytes)
})

t.test('--json tells the whole answer, with a body that is no text in base64', async (t) => {
  const { plane, invoke } = await start(t)
  plane.answer = { ...plane.answer, status: 201, headers: [['x-a', '1']], bodyBase64: base64('ü') }
  t.strictSame(JSON.parse((await invoke(['--json'])).stdout), {
    invocationId: 'inv-1',
    outcome: 'ok',
    status: 201,
    headers: [['x-a', '1']],
    body: 'ü',
    server: plane.url,
  })
  plane.answer = { ...plane.answer, bodyBase64: Buffer.from([0xff]).toString('base64') }
  t.match(JSON.parse((await invoke(['--json'])).stdout), { bodyBase64: '/w==', body: undefined })
})

t.test('a function that failed gives exit code 1 and says why', async (t) => {
  const { plane, invoke } = await start(t)
  const problem = problemOfOutcome('exception', 'The function threw: boom', 'inv-1')
  plane.answer = { outcome: 'exception', status: 500, headers: [], bodyBase64: base64(JSON.stringify(problem)), problem }
  const plain = await invoke([])
  t.match(plain, { exitCode: 1, stderr: /^Calling .*\ncarpool: The function threw: boom\n$/ })
  t.strictSame(JSON.parse(plain.stdout), problem)
  const json = await invoke(['--json'])
  t.match(json, { exitCode: 1, stderr: 'carpool: The function threw: boom\n' })
  t.match(JSON.parse(json.stdout), { invocationId: 'inv-1', outcome: 'exception', status: 500, problem })
})

t.test('an answer of 500 or more gives exit code 1, one below does not', async (t) => {
  const { plane, invoke } = await start(t)
  plane.answer = { ...plane.answer, status: 503 }
  t.match(await invoke([]), { exitCode: 1, stderr: /^Calling .*\ncarpool: The function answered with status 503\.\n$/ })
  plane.answer = { ...plane.answer, status: 499 }
  t.match(await invoke([]), { exitCode: 0, stderr: /^Calling .*\n$/ })
})
