import t from 'tap'
import { compileToCache } from '../src/index.ts'
import { isolateWith } from './support/isolate.ts'

t.test('entries run in order, and nothing of the host is there', async (t) => {
  const { isolate, next } = await isolateWith(t)
  isolate.enter('run', ['globalThis.n = 1'])
  isolate.enter('run', ['n + 1'])
  isolate.enter('run', ['[typeof process, typeof require, typeof ivm, typeof boot].join()'])
  t.equal(await next(), '1')
  t.equal(await next(), '2')
  t.equal(await next(), 'undefined,undefined,undefined,undefined')
})

t.test('a blocking callback gives its answer back', async (t) => {
  const { isolate, next } = await isolateWith(t)
  isolate.enter('run', ['ask(7)'])
  t.equal(await next(), '42')
})

t.test('code is loaded with and without its cache, and a cache of other code is ignored', async (t) => {
  const code = { source: '(function () { return [1, 2] })', filename: 'f.js' }
  const codeCache = await compileToCache(code, 32)
  t.ok(codeCache !== undefined && codeCache.length > 0)
  const other = await compileToCache({ source: '(function () { return 3 })', filename: 'g.js' }, 32)
  for (const cache of [undefined, codeCache, other, new Uint8Array([1, 2, 3])]) {
    const { isolate, next } = await isolateWith(t)
    await isolate.enterCode('load', 'loaded', { ...code, ...(cache !== undefined && { codeCache: cache }) })
    t.equal(await next(), 'loaded [1,2]')
  }
})

t.test('code that does not compile is refused with its position, and has no cache', async (t) => {
  const code = { source: '(function () {\n return ] })', filename: 'broken.js' }
  const { isolate } = await isolateWith(t)
  await t.rejects(isolate.enterCode('load', '', code), { message: /Unexpected token.*broken\.js:2:9/ })
  t.equal(await compileToCache(code, 32), undefined)
})

t.test('an endless loop is ended by dispose, and entering a disposed isolate is harmless', async (t) => {
  const { isolate, next } = await isolateWith(t)
  isolate.enter('run', ['1'])
  await next()
  isolate.enter('run', ['for (;;);'])
  isolate.dispose()
  isolate.dispose()
  t.ok(isolate.disposed)
  isolate.enter('run', ['2'])
})

t.test('an isolate that passes its memory limit is disposed', async (t) => {
  const { isolate } = await isolateWith(t, 16)
  isolate.enter('run', ['const kept = []; for (;;) kept.push({ a: 1 })'])
  await new Promise<void>((resolve) => {
    const check = setInterval(() => {
      if (!isolate.disposed) return
      clearInterval(check)
      resolve()
    }, 5)
  })
  t.ok(isolate.disposed)
})
