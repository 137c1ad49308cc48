// One case for each behaviour: an expression that must give in a function what it gives in Node.js.
import assert from 'node:assert'
import strict from 'node:assert/strict'
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import buffer, { Buffer as Imported } from 'node:buffer'
import crypto from 'node:crypto'
import diagnostics from 'node:diagnostics_channel'
import EventEmitter, { captureRejectionSymbol, errorMonitor, getEventListeners, on, once } from 'node:events'
import fs from 'node:fs'
import module, { createRequire, isBuiltin } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { performance as clock } from 'node:perf_hooks'
import process from 'node:process'
import punycode from 'punycode'
import querystring from 'node:querystring'
import readline from 'node:readline'
import stream, { Duplex, finished, PassThrough, pipeline, Readable, Transform, Writable } from 'node:stream'
import consumers from 'node:stream/consumers'
import streams from 'node:stream/promises'
import { StringDecoder } from 'node:string_decoder'
import timers from 'node:timers'
import { scheduler, setImmediate as immediately, setInterval as every, setTimeout as sleep } from 'node:timers/promises'
import url from 'node:url'
import util from 'node:util'
import types from 'node:util/types'
import vm from 'node:vm'
import worker from 'node:worker_threads'

/** The message and the code of what something throws. */
const thrown = async (run) => {
  try {
    await run()
    return 'nothing'
  } catch (error) {
    return [error.name, error.code, error.message]
  }
}
const I = (value, options) => util.inspect(value, options)
const B = Buffer

export const cases = {
  'assert: messages of comparisons': () =>
    Promise.all([
      thrown(() => assert.equal(1, 2)),
      thrown(() => assert.strictEqual({ a: 1 }, { a: 1 })),
      thrown(() => assert.deepStrictEqual({ a: 1, b: [1, 2, { c: 3 }] }, { a: 1, b: [1, 2, { c: 4 }] })),
      thrown(() => assert.notStrictEqual(1, 1)),
      thrown(() => assert.deepEqual(new Map([[1, 2]]), new Map([[1, 3]]))),
      thrown(() => assert.throws(() => {})),
      thrown(() =>
        assert.throws(() => {
          throw new TypeError('x')
        }, /y/),
      ),
      thrown(() => assert.rejects(Promise.resolve(1))),
      thrown(() => assert.ifError(new Error('e'))),
      thrown(() => assert.match('abc', /x/)),
      thrown(() => assert.fail('boom')),
      thrown(() => strict.equal('a'.repeat(10), 'b')),
      thrown(() => assert(false, 'said')),
      thrown(() => assert.partialDeepStrictEqual({ a: 1 }, { b: 2 })),
    ]),
  'assert: deep equality': () =>
    [
      [new Set([1, { a: 1 }]), new Set([1, { a: 1 }])],
      [
        [1, , 3],
        [1, undefined, 3],
      ],
      [new Date(0), new Date(0)],
      [/a/g, /a/i],
      [NaN, NaN],
      [new Error('a'), new Error('a')],
      [B.from('ab'), B.from('ab')],
      [{ [Symbol.for('s')]: 1 }, { [Symbol.for('s')]: 1 }],
      [Object(1), Object(1)],
      [-0, 0],
    ].map(([one, other]) => [util.isDeepStrictEqual(one, other)]),
  'async_hooks: a store is kept': async () => {
    const storage = new AsyncLocalStorage()
    const seen = []
    await storage.run('a', async () => {
      seen.push(storage.getStore())
      await null
      seen.push(storage.getStore())
      await sleep(1)
      seen.push(storage.getStore())
      await new Promise((resolve) => setTimeout(resolve, 1))
      seen.push(storage.getStore())
      await new Promise((resolve) =>
        process.nextTick(() => {
          seen.push(storage.getStore())
          resolve()
        }),
      )
      await new Promise((resolve) =>
        queueMicrotask(() => {
          seen.push(storage.getStore())
          resolve()
        }),
      )
      await new Promise((resolve) =>
        setImmediate(() => {
          seen.push(storage.getStore())
          resolve()
        }),
      )
      for await (const chunk of Readable.from(['x'])) seen.push(chunk, storage.getStore())
      await streams.pipeline(
        Readable.from(['y']),
        new Transform({
          transform(chunk, _, done) {
            seen.push(storage.getStore())
            done(null, chunk)
          },
        }),
        new PassThrough().resume(),
      )
      storage.run('b', () => seen.push(storage.getStore()))
      storage.exit(() => seen.push(storage.getStore()))
      const bound = AsyncLocalStorage.bind(() => storage.getStore())
      const snapshot = AsyncLocalStorage.snapshot()
      const resource = new AsyncResource('x')
      storage.run('c', () =>
        seen.push(
          bound(),
          snapshot(() => storage.getStore()),
          resource.runInAsyncScope(() => storage.getStore()),
        ),
      )
      storage.enterWith('d')
      await null
      seen.push(storage.getStore())
    })
    return [seen, storage.getStore() ?? 'none']
  },
  'async_hooks: two at the same time': async () => {
    const storage = new AsyncLocalStorage()
    const one = async (name) => {
      await sleep(name === 'x' ? 5 : 1)
      return storage.getStore()
    }
    return Promise.all([storage.run(1, one, 'x'), storage.run(2, one, 'y'), one('z')])
  },
  'buffer: encodings': () => {
    const text = 'héllo €😀\u0000'
    return ['utf8', 'latin1', 'ascii', 'hex', 'base64', 'base64url', 'utf16le', 'ucs2', 'binary'].map((encoding) => {
      const bytes = B.from(text, encoding)
      return [encoding, bytes.toString('hex'), bytes.toString(encoding), B.byteLength(text, encoding)]
    })
  },
  'buffer: decoding what is not valid': () => [
    B.from([0xff, 0xe2, 0x82, 0x41, 0xf0, 0x9f]).toString(),
    B.from('zz61', 'hex').length,
    B.from('6', 'hex').length,
    B.from('a-_b==zz', 'base64').toString('hex'),
    B.from('YW Jj\nZA', 'base64').toString(),
    B.from('QQ', 'base64url').toString(),
    B.from('\ud800x').toString('hex'),
    B.from([1, 256, -1, 3.7, '4', 'x']).toString('hex'),
  ],
  'buffer: numbers': () => {
    const bytes = B.alloc(32)
    bytes.writeUInt8(200, 0)
    bytes.writeInt16LE(-2, 1)
    bytes.writeUInt32BE(0xdeadbeef, 3)
    bytes.writeDoubleLE(Math.PI, 7)
    bytes.writeFloatBE(1.5, 15)
    bytes.writeBigInt64BE(-5n, 19)
    bytes.writeUIntBE(0x123456, 27, 3)
    return [
      bytes.toString('hex'),
      bytes.readUInt8(0),
      bytes.readInt16LE(1),
      bytes.readUInt32BE(3),
      bytes.readDoubleLE(7),
      bytes.readFloatBE(15),
      String(bytes.readBigInt64BE(19)),
      bytes.readUIntBE(27, 3),
      bytes.readIntLE(3, 6),
    ]
  },
  'buffer: search, fill, copy, compare': () => {
    const bytes = B.from('this is a buffer is')
    const target = B.alloc(5, '.')
    bytes.copy(target, 1, 5, 7)
    return [
      bytes.indexOf('is'),
      bytes.indexOf('is', 3),
      bytes.lastIndexOf('is'),
      bytes.lastIndexOf('is', -3),
      bytes.indexOf(B.from('buf')),
      bytes.indexOf(98),
      bytes.indexOf(''),
      bytes.includes('zz'),
      bytes.indexOf('s', -1),
      bytes.lastIndexOf('this'),
      bytes.indexOf('69', 0, 'hex'),
      B.from('abcabc', 'utf16le').indexOf('c', 0, 'utf16le'),
      target.toString(),
      B.alloc(5, 'ab').toString(),
      B.alloc(3, 0x61).toString(),
      B.alloc(4, 'YWI=', 'base64').toString(),
      B.from('abc').fill('é').toString('hex'),
      B.compare(B.from('a'), B.from('b')),
      B.from('abc').compare(B.from('xabc'), 1),
      B.from('ab').equals(B.from('ab')),
      B.from('abcd').swap16().toString(),
      B.from('abcdefgh').swap64().toString(),
      B.concat([B.from('a'), B.from('bc')], 2).toString(),
      B.from('abc').subarray(-2).toString(),
      B.from('abc').slice(1).toString(),
      JSON.stringify(B.from('x')),
      B.from('héllo').write('zz', 1),
      B.from(new Uint16Array([1, 258])).toString('hex'),
      B.from(new Uint16Array([1, 258]).buffer).toString('hex'),
      B.of(1, 2).toString('hex'),
    ]
  },
  'buffer: errors': () =>
    Promise.all([
      thrown(() => B.from(5)),
      thrown(() => B.alloc(-1)),
      thrown(() => B.alloc('1')),
      thrown(() => B.from('a').readUInt16BE(0)),
      thrown(() => B.from('ab').writeUInt8(300, 0)),
      thrown(() => B.concat('x')),
      thrown(() => B.from('x', 'nope')),
      thrown(() => B.from('abc').swap16()),
      thrown(() => B.from(null)),
      thrown(() => B.alloc(3).fill('zz', 'hex')),
    ]),
  'buffer: the module': () => [
    B === buffer.Buffer,
    B === Imported,
    I(B.from('abc')),
    B.isEncoding('UTF-8'),
    B.isEncoding('x'),
    B.poolSize,
    buffer.kMaxLength === buffer.constants.MAX_LENGTH,
    buffer.isUtf8(B.from('é')),
    buffer.isAscii(B.from('é')),
    buffer.transcode(B.from('é'), 'utf8', 'latin1').toString('hex'),
    buffer.btoa('hi'),
    buffer.atob('aGk='),
    B.from('a') instanceof Uint8Array,
    Object.keys(buffer).length,
  ],
  'diagnostics_channel': () => {
    const seen = []
    const channel = diagnostics.channel('x')
    const listener = (message, name) => seen.push(message, name)
    diagnostics.subscribe('x', listener)
    channel.publish(1)
    seen.push(channel.hasSubscribers, diagnostics.unsubscribe('x', listener), channel.hasSubscribers)
    const tracing = diagnostics.tracingChannel('t')
    tracing.subscribe({
      start: () => seen.push('start'),
      end: () => seen.push('end'),
      asyncStart: () => seen.push('asyncStart'),
      asyncEnd: () => seen.push('asyncEnd'),
      error: () => seen.push('error'),
    })
    seen.push(tracing.traceSync((x) => x + 1, {}, null, 1))
    return tracing.tracePromise(async () => 5).then((value) => [...seen, value])
  },
  'events': async () => {
    const seen = []
    class Mine extends EventEmitter {}
    const emitter = new Mine({ captureRejections: true })
    emitter.on('newListener', (name) => seen.push(`new ${name}`))
    emitter
      .on('a', (...args) => seen.push(args))
      .once('a', () => seen.push('once'))
      .prependListener('a', () => seen.push('first'))
    seen.push(emitter.emit('a', 1, 2), emitter.emit('a'), emitter.emit('none'))
    emitter.on('error', (error) => seen.push(`error ${error.message}`))
    emitter.on('bad', async () => {
      throw new Error('rejected')
    })
    emitter.emit('bad')
    await sleep(1)
    const next = once(emitter, 'b')
    emitter.emit('b', 7)
    seen.push(
      await next,
      emitter.listenerCount('a'),
      emitter.eventNames(),
      EventEmitter.defaultMaxListeners,
      getEventListeners(emitter, 'a').length,
      EventEmitter.EventEmitter === EventEmitter,
    )
    setImmediate(() => {
      emitter.emit('c', 1)
      emitter.emit('c', 2)
    })
    for await (const [value] of on(emitter, 'c')) {
      seen.push(value)
      if (value === 2) break
    }
    const controller = new AbortController()
    const waiting = thrown(() => once(emitter, 'never', { signal: controller.signal }))
    controller.abort()
    seen.push(
      await waiting,
      await thrown(() => new EventEmitter().emit('error', new Error('boom'))),
      await thrown(() => new EventEmitter().emit('error', 5)),
      await thrown(() => emitter.on('x')),
    )
    const target = new EventTarget()
    const event = once(target, 'foo')
    target.dispatchEvent(new Event('foo'))
    seen.push(
      (await event)[0].type,
      typeof errorMonitor,
      typeof captureRejectionSymbol,
      I(new EventEmitter(), { depth: 0 }).split('\n').length,
    )
    return seen
  },
  'fs: an empty path names nothing': async () => [
    fs.existsSync(''),
    fs.realpathSync('') === process.cwd(),
    await thrown(() => fs.readdirSync('')),
    await thrown(() => fs.readFileSync('')),
    await thrown(() => fs.statSync('')),
    await thrown(() => fs.accessSync('')),
    await thrown(() => fs.promises.readdir('')),
  ],
  'module': () => [
    isBuiltin('fs'),
    isBuiltin('node:test'),
    isBuiltin('test'),
    isBuiltin('x'),
    module.builtinModules.includes('fs'),
    typeof createRequire('/x/y.js'),
  ],
  'os': () => [
    os.EOL,
    os.type(),
    os.platform(),
    os.endianness(),
    os.constants.signals.SIGTERM,
    os.devNull,
    typeof os.hostname(),
    Array.isArray(os.cpus()),
    os.constants.errno.ENOENT,
  ],
  'path': () => [
    path.join('a', '..', 'b/c'),
    path.resolve('/a', 'b', '../c'),
    path.basename('/x/y.txt', '.txt'),
    path.extname('a.b.c'),
    path.dirname('/a/b'),
    path.relative('/a/b/c', '/a/d'),
    path.parse('/home/u/f.txt'),
    path.format({ dir: '/a', base: 'b.c' }),
    path.normalize('/a//b/../c/.'),
    path.win32.join('a', 'b'),
    path.win32.parse('C:\\a\\b.c'),
    path.sep,
    path.posix === path,
  ],
  'perf_hooks': () => [clock === globalThis.performance, typeof clock.now(), typeof clock.timeOrigin],
  'process': async () => {
    const seen = []
    process.once('mine', (value) => seen.push(value))
    seen.push(
      process.emit('mine', 1),
      process.emit('mine', 2),
      process.listenerCount('mine'),
      process.version.startsWith('v26'),
      process.versions.node.startsWith('26'),
      process.platform,
      process.arch,
      typeof process.cwd(),
      process.hrtime().length,
      typeof process.hrtime.bigint(),
      typeof process.uptime(),
      process.release.name,
      process === globalThis.process,
      typeof process.memoryUsage().rss,
      Array.isArray(process.execArgv),
      Array.isArray(process.argv),
      process.exitCode,
      process.stdout.write(''),
      typeof process.nextTick,
      process.env.NO_SUCH_VARIABLE,
    )
    return seen
  },
  'process: nextTick comes before promises': async () => {
    const seen = []
    await new Promise((resolve) =>
      setTimeout(() => {
        Promise.resolve().then(() => seen.push('promise'))
        queueMicrotask(() => seen.push('microtask'))
        process.nextTick((value) => seen.push(value), 'tick')
        process.nextTick(() => process.nextTick(() => seen.push('inner tick')))
        seen.push('sync')
        setTimeout(resolve, 1)
      }, 1),
    )
    return seen
  },
  'punycode': () => [
    punycode.toASCII('español.com'),
    punycode.toUnicode('xn--espaol-zwa.com'),
    punycode.encode('ü'),
    punycode.decode('tda'),
  ],
  'querystring': () => [
    querystring.parse('a=1&b=2&a=3&c=%20x&d'),
    querystring.stringify({ a: [1, 2], b: 'x y', c: true, d: null }),
    querystring.escape('a b&ü'),
    querystring.unescape('a%20b%zz'),
    querystring.parse('a:1;b:2', ';', ':'),
  ],
  'readline': async () => {
    const lines = []
    for await (const line of readline.createInterface({ input: Readable.from(['a\nb', 'c\r\n', 'd']), crlfDelay: Infinity }))
      lines.push(line)
    await new Promise((resolve) =>
      readline
        .createInterface({ input: Readable.from(['x\ny\n']) })
        .on('line', (line) => lines.push(line))
        .on('close', resolve),
    )
    return lines
  },
  'stream: readable': async () => {
    const seen = []
    const readable = new Readable({ read() {} })
    readable.setEncoding('utf8')
    readable.push(B.from('é').subarray(0, 1))
    readable.push(B.from('é').subarray(1))
    readable.push('abc')
    readable.push(null)
    for await (const chunk of readable) seen.push(chunk)
    const objects = Readable.from([1, 2, 3, 4])
    seen.push(
      await objects
        .filter((x) => x % 2 === 0)
        .map(async (x) => x * 10)
        .toArray(),
      await Readable.from([1, 2, 3]).reduce((a, b) => a + b, 0),
      await Readable.from([1, 2, 3]).take(2).toArray(),
    )
    seen.push(
      readable.destroyed,
      readable.readableEnded,
      readable.readableFlowing,
      stream.getDefaultHighWaterMark(false),
      stream.getDefaultHighWaterMark(true),
      Stream === stream.Stream,
    )
    return seen
  },
  'stream: writable, transform, pipeline': async () => {
    const seen = []
    const upper = new Transform({
      transform(chunk, encoding, done) {
        done(null, String(chunk).toUpperCase())
      },
      flush(done) {
        this.push('!')
        done()
      },
    })
    const sink = new Writable({
      highWaterMark: 3,
      write(chunk, encoding, done) {
        seen.push(String(chunk))
        setImmediate(done)
      },
      final(done) {
        seen.push('final')
        done()
      },
    })
    await streams.pipeline(Readable.from(['ab', 'cd']), upper, sink)
    seen.push(
      sink.writableFinished,
      sink.write('late', () => {}),
    )
    sink.on('error', (error) => seen.push(error.code))
    await sleep(1)
    const failing = new PassThrough()
    const failed = thrown(() => streams.pipeline(failing, new PassThrough()))
    failing.destroy(new Error('cut'))
    seen.push(await failed, await thrown(() => streams.finished(new PassThrough().destroy())))
    await new Promise((resolve) =>
      pipeline(Readable.from(['x']), new PassThrough(), (error) => {
        seen.push(error?.code)
        resolve()
      }).resume(),
    )
    await new Promise((resolve) => {
      const done = new PassThrough()
      finished(done, () => {
        seen.push('finished')
        resolve()
      })
      done.end('x')
      done.resume()
    })
    const duplex = Duplex.from(async function* (source) {
      for await (const chunk of source) yield String(chunk).repeat(2)
    })
    duplex.end('ab')
    seen.push(await consumers.text(duplex), await consumers.json(Readable.from(['{"a":', '1}'])))
    const order = []
    const slow = new Writable({
      highWaterMark: 2,
      write(chunk, encoding, done) {
        order.push(`write ${chunk}`)
        setTimeout(done, 1)
      },
    })
    slow.on('drain', () => order.push('drain'))
    order.push(slow.write('abc'), slow.writableNeedDrain)
    slow.end('d')
    await streams.finished(slow)
    return [...seen, order, I(new PassThrough().readableFlowing)]
  },
  'stream: events in order': async () => {
    const seen = []
    const through = new PassThrough()
    for (const name of ['readable', 'end', 'finish', 'close', 'pause', 'resume', 'prefinish'])
      through.on(name, () => seen.push(name))
    through.write('a')
    through.end('b')
    await sleep(1)
    seen.push(String(through.read()))
    await sleep(1)
    const piped = new PassThrough()
    const out = []
    piped
      .on('pipe', () => out.push('pipe'))
      .on('unpipe', () => out.push('unpipe'))
      .on('data', (chunk) => out.push(String(chunk)))
      .on('end', () => out.push('end'))
    Readable.from(['x', 'y']).pipe(piped)
    await streams.finished(piped)
    return [seen, out]
  },
  'stream: web': async () => {
    const web = Readable.toWeb(Readable.from([B.from('a'), B.from('b')], { objectMode: false }))
    const parts = []
    for await (const part of web) parts.push(B.from(part).toString())
    const back = Readable.fromWeb(
      new ReadableStream({
        start(controller) {
          controller.enqueue('x')
          controller.enqueue('y')
          controller.close()
        },
      }),
    )
    parts.push(...(await back.toArray()))
    const written = []
    const writer = Writable.toWeb(
      new Writable({
        write(chunk, encoding, done) {
          written.push(String(chunk))
          done()
        },
      }),
    ).getWriter()
    await writer.write('w')
    await writer.close()
    return [parts.join(), written]
  },
  'string_decoder': () => {
    const seen = []
    for (const encoding of ['utf8', 'utf16le', 'base64', 'base64url', 'hex', 'latin1', 'ascii']) {
      const decoder = new StringDecoder(encoding)
      const bytes = B.from('aé€😀z', encoding === 'utf16le' ? 'utf16le' : 'utf8')
      let text = []
      for (const byte of bytes) text.push(decoder.write(B.from([byte])))
      text.push(decoder.end())
      seen.push([encoding, text])
    }
    const decoder = new StringDecoder()
    seen.push(
      decoder.write(B.from([0xe2, 0x82])),
      decoder.end(),
      decoder.write(B.from([0xe2, 0x41])),
      decoder.write(B.from([0xf0, 0x9f, 0x98])),
      decoder.lastNeed,
      decoder.end(B.from([0xff])),
    )
    return seen
  },
  'timers': async () => {
    const seen = []
    const timeout = setTimeout(() => seen.push('no'), 1)
    seen.push(typeof timeout, timeout.hasRef(), timeout.unref() === timeout, timeout.hasRef(), typeof +timeout)
    clearTimeout(timeout)
    const refreshed = setTimeout(() => seen.push('refreshed'), 1)
    refreshed.refresh()
    await sleep(5)
    const byNumber = setTimeout(() => seen.push('no'), 1)
    clearTimeout(+byNumber)
    seen.push(await sleep(1, 'value'), await immediately('now'), await scheduler.wait(1), timers.setTimeout === setTimeout)
    let count = 0
    for await (const value of every(1, 'tick')) {
      seen.push(value)
      if (++count === 2) break
    }
    seen.push(
      await thrown(() => sleep(1000, null, { signal: AbortSignal.abort() })),
      await util.promisify(setTimeout)(1, 'p'),
      await thrown(() => sleep(1, null, 5)),
    )
    const order = []
    await Promise.all([sleep(4).then(() => order.push(4)), sleep(1).then(() => order.push(1))])
    return [seen, order]
  },
  'url: legacy': () => [
    { ...url.parse('http://user:pass@Sub.Example.com:8080/p/a/t/h?query=string&a=1#hash', true) },
    { ...url.parse('/a/b?c=d') },
    { ...url.parse('//host/path', false, true) },
    { ...url.parse('mailto:a@b.c') },
    url.format({ protocol: 'https', hostname: 'x.y', port: 1, pathname: '/p', query: { a: [1, 2] }, hash: 'h' }),
    url.resolve('http://a/b/c/d', '../e?f'),
    url.resolve('/one/two', 'three'),
    url.format(new URL('http://測試.com/p#h'), { fragment: false, unicode: true }),
  ],
  'url: files': () => [
    url.fileURLToPath('file:///a%20b/c'),
    url.pathToFileURL('/a b/c#d?e%').href,
    url.urlToHttpOptions(new URL('https://u:p@x.y:81/z?q=1')),
    url.domainToASCII('español.com'),
    url.domainToUnicode('xn--espaol-zwa.com'),
    url.URL === globalThis.URL,
  ],
  'url: errors': () =>
    Promise.all([
      thrown(() => url.fileURLToPath('http://x')),
      thrown(() => url.parse(5)),
      thrown(() => url.fileURLToPath('file://host/x')),
    ]),
  'util: inspect': () => [
    I({
      a: 1,
      b: "it's",
      c: [1, [2, [3, [4]]]],
      d: new Map([[{ k: 1 }, { e: 2 }]]),
      f: () => 1,
      g: /x/,
      h: null,
      j: Symbol('s'),
      k: 1n,
      l: new Set([1, 'a']),
      m: undefined,
    }),
    I({
      'odd key': undefined,
      z: -0,
      date: new Date(0),
      get y() {
        return 1
      },
      set y(v) {},
      get ro() {
        return 1
      },
      [Symbol('sym')]: 1,
    }),
    I(
      new (class Point {
        x = 1
        #p = 2
      })(),
    ),
    I(Object.create(null)),
    I(class A extends Array {}),
    I(function named() {}),
    I(async () => {}),
    I(function* g() {}),
    I(new Uint8Array(3)),
    I(new ArrayBuffer(4)),
    I([, 'x', ,]),
    I("a\nb'c"),
    I(['a'.repeat(80), 'b'.repeat(80)]),
    I(Array.from({ length: 120 }, (_, i) => i)),
    I(Promise.resolve(5)),
    I(Promise.reject(new Error('x')).catch(() => {}) && new Promise(() => {})),
    I(new Proxy({ a: 1 }, {}), { showProxy: true }),
    I(new Proxy(function f() {}, {})),
    I([1, 2, 3][Symbol.iterator]()),
    I(new Map([[1, 2]]).entries()),
    I(new WeakMap()),
    I(new WeakSet()),
    I({ a: { b: { c: { d: 1 } } } }, { depth: 0 }),
    I({ a: { b: { c: { d: 1 } } } }, { depth: null, compact: false }),
    I({ b: 1, a: 2 }, { sorted: true }),
    I({ a: 'x' }, { colors: true }),
    I(new Error('msg'), { compact: true }).split('\n')[0],
    I(Object.assign(new RangeError('r'), { code: 'C', more: { x: 1 } })).replace(/\n +at .*/g, ''),
    I(new Error('outer', { cause: new TypeError('inner') })).replace(/\n +(?:at|\.\.\.) .*/g, ''),
    I(new AggregateError([new Error('one')], 'many')).replace(/\n +at .*/g, ''),
    I(Object(5)),
    I(Object('str')),
    I(Object(Symbol('q'))),
    I(new Boolean(false)),
    I([undefined, null, NaN, -0]),
    I({ [util.inspect.custom]: (depth, options) => `CUSTOM ${depth}` }),
    I(globalThis.process?.stdout === undefined),
    I(new Date(NaN)),
    I([
      ['a', 1],
      ['b', 2],
    ]),
    I(
      (function () {
        return arguments
      })(1, 2),
    ),
    I(new URLSearchParams('a=1&b=2')),
    I('x'.repeat(11000)).length,
    I({ long: 'x'.repeat(200) }),
    I(Symbol.iterator),
    I(12345678.123, { numericSeparator: true }),
    I(
      (() => {
        const circular = { name: 'c' }
        circular.self = circular
        circular.list = [circular]
        return circular
      })(),
    ),
    I(
      new (class Foo extends Map {
        constructor() {
          super([[1, 2]])
        }
      })(),
    ),
    I(Object.create({ inherited: 1 })),
    I(Object.create(class X {}.prototype)),
    I({ __proto__: { constructor: { name: 'Fake' } } }),
    I(
      new (class extends Error {
        name = 'Mine'
      })('m'),
    ).split('\n')[0],
    I({ 'a-b': 1, 2: 3, ü: 4 }),
    I(['日本', '😀', 'e\u0301']),
  ],
  'util: format': () => [
    util.format('%s %d %i %f %j %% %o %O %c', 'a', 1.5, '42.7', '2.5', { x: 1 }, [1, { a: 2 }], { b: 3 }, 'css'),
    util.format('a', { b: { c: { d: {} } } }, 1),
    util.format(1, 'x'),
    util.format('%s', null, undefined, 5n, Symbol('a'), -0, () => {}, { toString: () => 'str' }, new Error('e').message),
    util.format('%d', '0x10', 5n),
    util.format('%s %s', 'only'),
    util.format('%x'),
    util.formatWithOptions({ colors: true }, '%s %O', 'a', { b: 1 }),
    util.format('%j', { toJSON: () => 'j' }),
    util.format('%i', 'x'),
  ],
  'util: functions': async () => {
    function A() {}
    function Parent() {}
    util.inherits(A, Parent)
    const withCustom = (done) => done()
    withCustom[util.promisify.custom] = async () => 'custom'
    return [
      await util.promisify((value, done) => done(null, value + 1))(1),
      await thrown(() => util.promisify((done) => done(new Error('p')))()),
      await util.promisify(withCustom)(),
      new A() instanceof Parent,
      A.super_ === Parent,
      await new Promise((resolve) => util.callbackify(async (x) => x)(3, (error, value) => resolve([error, value]))),
      await new Promise((resolve) =>
        util.callbackify(async () => {
          throw null
        })((error) => resolve([error.code, error.message])),
      ),
      util.stripVTControlCharacters('\u001b[31mred\u001b[0m'),
      util.styleText('red', 'x', { validateStream: false }),
      util.styleText(['bold', 'underline'], 'y', { validateStream: false }),
      util.toUSVString('a\ud800'),
      util.isArray([]),
      util.types === types,
      util.TextEncoder === TextEncoder,
      util.inspect.defaultOptions.depth,
      util.getSystemErrorName(-2),
      util.getSystemErrorMap().get(-13),
      util.deprecate(() => 5, 'old', 'DEP')(),
      util.parseArgs({
        args: ['-f', '--bar', 'b', 'pos'],
        options: { foo: { type: 'boolean', short: 'f' }, bar: { type: 'string' } },
        allowPositionals: true,
      }),
      await thrown(() => util.parseArgs({ args: ['--nope'], options: {} })),
      String(new util.MIMEType('text/html; charset=utf-8')),
      new util.MIMEType('text/html;a=b').params.get('a'),
      util.parseEnv('A=1\nB="x y"\n# c\nexport C=\'z\''),
      util.debuglog('x').enabled,
      util.aborted !== undefined,
      util.isDeepStrictEqual({ a: [1] }, { a: [1] }),
      util.diff?.('a', 'b'),
      await thrown(() => util.promisify(5)),
      await thrown(() => util.inherits(A, null)),
    ]
  },
  'util: types': () => {
    const values = [
      new Date(),
      new Map(),
      new Set(),
      /x/,
      Promise.resolve(),
      new Error(),
      new Uint8Array(),
      new ArrayBuffer(1),
      new DataView(new ArrayBuffer(1)),
      async () => {},
      function* () {},
      (function* () {})(),
      Object(1),
      Object('s'),
      Object(Symbol()),
      new Proxy({}, {}),
      new WeakMap(),
      new WeakSet(),
      (function () {
        return arguments
      })(),
      new Map().entries(),
      new Set().values(),
      {},
      [],
      null,
      5,
      { [Symbol.toStringTag]: 'Date' },
    ]
    const names = Object.keys(types)
      .filter(
        (name) =>
          ![
            'isKeyObject',
            'isCryptoKey',
            'isEventTarget',
            'isExternal',
            'isModuleNamespaceObject',
            'isSharedArrayBuffer',
          ].includes(name),
      )
      .toSorted()
    return [names, values.map((value) => names.filter((name) => types[name](value)))]
  },
  'util: types of keys': async () => {
    const secret = crypto.createSecretKey(B.from('secret'))
    const made = async (usages) => globalThis.crypto.subtle.importKey('raw', B.alloc(16), 'AES-GCM', true, usages)
    const key = await made(['encrypt'])
    const values = [
      key,
      secret,
      { [Symbol.toStringTag]: 'CryptoKey' },
      Object.create(CryptoKey.prototype),
      CryptoKey.prototype,
      CryptoKey,
      null,
      1,
    ]
    return [
      values.map((value) => [types.isCryptoKey(value), types.isKeyObject(value)]),
      util.isDeepStrictEqual(key, await made(['encrypt'])),
      util.isDeepStrictEqual(key, await made(['decrypt'])),
      util.isDeepStrictEqual(secret, crypto.createSecretKey(B.from('secret'))),
      util.isDeepStrictEqual(secret, crypto.createSecretKey(B.from('other'))),
    ]
  },
  'vm and worker_threads': () => [
    vm.runInThisContext('1 + 1'),
    new vm.Script('2 * 3').runInThisContext(),
    worker.isMainThread,
    worker.threadId,
    worker.parentPort,
    worker.workerData,
  ],
  'what a module exports': () =>
    Object.entries({
      assert,
      buffer,
      diagnostics,
      EventEmitter,
      path,
      querystring,
      stream,
      streams,
      consumers,
      url,
      util,
      timers,
      punycode,
    }).map(([name, module]) => [name, Object.keys(module).toSorted().join()]),
}
const { Stream } = stream
