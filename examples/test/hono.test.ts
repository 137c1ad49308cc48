import t from 'tap'
import { serveExamples } from './support/serve-examples.ts'

t.test('hono routes by path and method, with parameters and JSON', async (t) => {
  const url = `${await serveExamples(t, ['hono'])}/hono`
  const call = async (path: string, init?: RequestInit): Promise<[number, string]> => {
    const response = await fetch(`${url}${path}`, init)
    t.equal(response.headers.get('x-powered-by'), 'Hono', `the middleware saw ${path}`)
    return [response.status, await response.text()]
  }
  const put = (text: unknown) => ({ method: 'PUT', body: JSON.stringify({ text }) })

  t.strictSame(await call('/'), [200, 'Hello from Hono'])
  t.strictSame(await call('/notes/1'), [404, '404 Not Found'])
  t.strictSame(await call('/notes/1', put('buy milk')), [200, '{"text":"buy milk"}'])
  t.strictSame(await call('/notes/%C3%A9', put('café')), [200, '{"text":"café"}'])
  t.strictSame(await call('/notes/1'), [200, '{"text":"buy milk"}'])
  t.strictSame(await call('/notes'), [200, '{"1":{"text":"buy milk"},"é":{"text":"café"}}'])
  t.strictSame(await call('/notes/1', put(7)), [400, '{"error":"text must be a string"}'])
  t.strictSame(await call('/nowhere'), [404, '404 Not Found'])
})
