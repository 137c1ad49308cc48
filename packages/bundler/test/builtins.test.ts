import { readFileSync } from 'node:fs'
import { builtinModules, createRequire } from 'node:module'
import { join } from 'node:path'
import vm from 'node:vm'
import t from 'tap'
import { IS_WHOLE } from '../../../test/support/form.ts'
import { bundleFunction } from '../src/index.ts'
import { runInIsolate } from './support/isolate.ts'
import { refusalOf } from './support/refusal.ts'

/** For each module an expression over it, `m`, that must give in an isolate what it gives in Node. */
const USES: Record<string, string> = {
  'buffer': `(() => {
    const { Buffer } = m
    const x = Buffer.from('héllo')
    return [x.toString('hex'), x.toString('base64'), x.toString('base64url'), Buffer.from('aGk=', 'base64').toString(), x.readUInt16BE(0),
      Buffer.from('6869', 'hex').toString('latin1'), Buffer.concat([x, Buffer.alloc(2)]).length, Buffer.byteLength('é'), Buffer.isBuffer(x),
      x.equals(Buffer.from('héllo')), x.indexOf('l'), JSON.stringify(x), Buffer.alloc(3, 'a').toString(), x instanceof Uint8Array,
      Buffer.from([0xff, 0xfe, 0x41]).toString(), Buffer.from('a').subarray(0) instanceof Buffer, Buffer.compare(x, Buffer.from('i'))]
  })()`,
  'diagnostics_channel': `(() => {
    const seen = []
    m.channel('x').subscribe((message, name) => seen.push(message, name))
    m.channel('x').publish(1)
    return seen
  })()`,
  'events': `(async () => {
    const seen = []
    class Emitter extends m {}
    const emitter = new Emitter()
    emitter.on('a', (...args) => seen.push(args)).once('a', () => seen.push('once')).prependListener('a', () => seen.push('first'))
    emitter.emit('a', 1, 2)
    emitter.emit('a')
    try { emitter.emit('error', new Error('boom')) } catch (error) { seen.push(error.message) }
    const next = m.once(emitter, 'b')
    emitter.emit('b', 7)
    return [...seen, await next, emitter.listenerCount('a'), emitter.eventNames(), m.EventEmitter === m, m.defaultMaxListeners]
  })()`,
  'path': `[m.join('a', '..', 'b/c'), m.resolve('/a', 'b', '../c'), m.basename('/x/y.txt', '.txt'), m.extname('a.b.c'), m.dirname('/a/b'),
    m.relative('/a/b/c', '/a/d'), m.parse('/home/u/f.txt'), m.isAbsolute('x'), m.normalize('/a//b/../c/.'), m.join('a', 'b/'), m.sep,
    m.posix.join('a', 'b')]`,
  'path/posix': `m.join('a', 'b')`,
  'punycode': `[m.toASCII('español.com'), m.toUnicode('xn--espaol-zwa.com')]`,
  'querystring': `[m.parse('a=1&b=2&a=3&c=%20x'), m.stringify({ a: [1, 2], b: 'x y' }), m.escape('a b&'), m.unescape('a%20b')]`,
  'timers': `new Promise((resolve) => m.setTimeout(resolve, 1, 'fired'))`,
  'timers/promises': `m.setTimeout(1, 'fired')`,
  'util': `(async () => {
    function A() {}
    function B() {}
    m.inherits(A, B)
    const circular = {}
    circular.self = circular
    const custom = { [m.inspect.custom]: () => 'CUSTOM' }
    return [
      m.format('%s %d %i %f %j %% %o', 'a', 1.5, 1.5, '2.5', { x: 1 }, 'o'), m.format('a', { b: { c: { d: {} } } }, 1), m.format(1, 'x'),
      m.inspect({ a: 1, b: "it's", c: [1, [2]], d: new Map([[1, { e: 2 }]]), f: () => 1, g: /x/, h: null, j: Symbol('s'), k: 1n, l: new Set() }),
      m.inspect({ 'odd key': undefined, z: -0, date: new Date(0), get y() { return 1 } }), m.inspect('text'), m.inspect(circular), m.inspect(custom),
      m.inspect(new (class Point { x = 1 })()), m.inspect(Object.create(null)), m.inspect(new Uint8Array(2)), m.inspect([]), m.inspect({}),
      await m.promisify((value, done) => done(null, value + 1))(1), new A() instanceof B, A.super_ === B, m.deprecate(() => 5, 'old')(),
      await new Promise((resolve) => m.callbackify(async (x) => x)(3, (error, value) => resolve([error, value]))),
      m.stripVTControlCharacters('\\u001b[31mred\\u001b[0m'), typeof m.TextEncoder, m.types.isDate(new Date()),
    ]
  })()`,
  'util/types': `[m.isDate(new Date()), m.isDate({}), m.isMap(new Map()), m.isPromise({ then() {} }), m.isAsyncFunction(async () => {}),
    m.isGeneratorFunction(function* () {}), m.isNativeError(new TypeError()), m.isTypedArray(new Int8Array()), m.isUint8Array(new Uint8Array()),
    m.isAnyArrayBuffer(new ArrayBuffer(1)), m.isBoxedPrimitive(Object(1)), m.isBoxedPrimitive(1), m.isRegExp(/x/), m.isSet(new Set())]`,
}

const require = createRequire(import.meta.url)

/** In the short form all are in one bundle; in the whole one each is alone too, with nothing that another one brings along. */
const BUNDLES = [Object.keys(USES), ...(IS_WHOLE ? Object.keys(USES).map((name) => [name]) : [])]

for (const names of BUNDLES) {
  t.test(`what modules of Node.js give in an isolate and in Node, imported and required: ${names.join(', ')}`, async (t) => {
    const uses = names.map((name) => `(m) => ${USES[name]}`)
    const expected = await Promise.all(
      uses.map(async (use, index): Promise<unknown> => {
        const inNode = vm.runInThisContext(use) as (m: unknown) => unknown
        return JSON.parse(JSON.stringify(await inNode(require(`node:${names[index]}`))))
      }),
    )
    const list = `[${uses.map((use, index) => `(${use})(m${index})`).join(',\n')}]`
    const folder = t.testdir({
      'imported.mjs': `${names.map((name, index) => `import m${index} from 'node:${name}'`).join('\n')}
        export const handler = () => Promise.all(${list})`,
      'required.cjs': `${names.map((name, index) => `const m${index} = require('${name}')`).join('\n')}
        exports.handler = () => Promise.all(${list})`,
    })
    for (const file of ['imported.mjs', 'required.cjs']) {
      const { code } = await bundleFunction(join(folder, file))
      const given = (await runInIsolate(code, 'exports.handler()')) as unknown[]
      for (const [index, name] of names.entries()) t.same(given[index], expected[index], `${name}, ${file}`)
    }
  })
}

t.test('node:url gives what it gives in Node, where there is a global URL', async (t) => {
  const use = `[url.parse('http://u:p@host:80/p/a?x=1#h').pathname, url.parse('/a?b=c', true).query.b, url.format({ protocol: 'http', host: 'a.b', pathname: '/c' }),
    url.resolve('http://a/b/c', '../d'), url.fileURLToPath('file:///a/b%20c'), url.pathToFileURL('/a/b c').href, new url.URL('http://x/y?z').search]`
  const { code } = await bundleFunction(t.testdir({ 'index.cjs': `const url = require('url'); exports.handler = () => ${use}` }))
  t.same(await runInIsolate(code, 'exports.handler()'), [
    '/p/a',
    'c',
    'http://a.b/c',
    'http://a/d',
    '/a/b c',
    'file:///a/b%20c',
    '?z',
  ])
})

t.test(
  'the free identifier Buffer is the Buffer of node:buffer, in both formats, and costs nothing if it is not used',
  async (t) => {
    const folder = t.testdir({
      'index.mjs': `import old from './old.cjs'; import { Buffer as Same } from 'node:buffer'
      export const handler = () => [Buffer.from('é').toString('hex'), old.hex('é'), Buffer === Same, Buffer === old.Buffer, typeof Buffer]`,
      'old.cjs': 'leaked = 1; exports.Buffer = Buffer; exports.hex = (text) => new Buffer(text).toString("hex")',
      'none.mjs': 'export const handler = () => globalThis.Buffer?.name',
    })
    const { code } = await bundleFunction(folder)
    t.same(await runInIsolate(code, 'exports.handler()'), ['c3a9', 'c3a9', true, true, 'function'])
    const without = await bundleFunction(join(folder, 'none.mjs'))
    t.ok(without.code.length < 2000)
  },
)

t.test('what stands behind a getter of a module of Node.js is loaded when it is used, and has its name then', async (t) => {
  const folder = t.testdir({
    'index.mjs': `import './watch.mjs'; import { isUtf8, Buffer } from 'node:buffer'; import old from './old.cjs'; import { inspect } from 'node:util'
      class MIMEType {}
      function debounce() {}
      function parseArgs() {}
      export const handler = () => [read.splice(0), isUtf8(Buffer.from('a')), inspect(1), MIMEType.name, debounce.name, parseArgs.name,
        old.util.MIMEType.name, old.util.debounce.name, old.util.parseArgs.name, new old.buffer.Blob().name, read]`,
    'old.cjs': "exports.util = require('util'); exports.buffer = require('buffer')",
    'watch.mjs': `globalThis.read = []
      for (const name of ['Blob', 'File']) {
        Object.defineProperty(globalThis, name, { configurable: true, get: () => (read.push(name), class { name = name }) })
      }`,
  })
  t.same(await runInIsolate((await bundleFunction(folder)).code, 'exports.handler()'), [
    [],
    true,
    '1',
    'MIMEType',
    'debounce',
    'parseArgs',
    'MIMEType',
    'debounce',
    'parseArgs',
    'Blob',
    ['Blob'],
  ])
})

t.test('node:process is the global of the host', async (t) => {
  const files = {
    'index.mjs': "import process, { env } from 'node:process'; export const handler = () => [process.env.GREETING, env.GREETING]",
  }
  t.same(await runInIsolate((await bundleFunction(t.testdir(files))).code, 'exports.handler()'), ['hi', 'hi'])
})

t.test('a built-in module that cannot work is there, and says so by name where it is used', async (t) => {
  const folder = t.testdir({
    'index.mjs': `import { spawn } from 'node:child_process'; import old from './old.cjs'; import * as http2 from 'node:http2'; import net from 'net'
      import tls from 'node:tls'
      class Mine extends net.Server {}
      const refusal = (use) => { try { use() } catch (error) { return [error.code, error.message] } }
      export const handler = () => [refusal(() => spawn('ls')), refusal(() => old.connect()), refusal(() => new http2.Http2ServerRequest()),
        refusal(() => net.createServer()), refusal(() => new Mine().listen(80)), net.isIP('::1'), http2.constants.HTTP2_HEADER_STATUS,
        tls.DEFAULT_MAX_VERSION]`,
    'old.cjs': "const { createSocket } = require('dgram'); exports.connect = createSocket",
  })
  const CODE = 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM'
  const NO_SOCKETS = 'it has no sockets of this kind; use fetch, node:net or node:tls.'
  const NO_SERVERS = 'nothing reaches it but its calls; node:http has servers that answer them.'
  t.same(await runInIsolate((await bundleFunction(folder)).code, 'exports.handler()'), [
    [CODE, 'node:child_process.spawn is not available in a function: it has no processes.'],
    [CODE, `node:dgram.createSocket is not available in a function: ${NO_SOCKETS}`],
    [CODE, `node:http2.Http2ServerRequest is not available in a function: ${NO_SOCKETS}`],
    [CODE, `node:net.createServer is not available in a function: ${NO_SERVERS}`],
    [CODE, `node:net.createServer is not available in a function: ${NO_SERVERS}`],
    6,
    ':status',
    'TLSv1.3',
  ])
})

t.test('every built-in module of Node.js can be imported, and is in the table of docs/compatibility.md', async (t) => {
  // Parts of the runtime, which an isolate here has not.
  const native = ['crypto', 'stream/web', 'zlib']
  const names = builtinModules.map((name) => name.replace('node:', '')).filter((name) => !name.startsWith('_'))
  const table = readFileSync(join(import.meta.dirname, '../../../docs/compatibility.md'), 'utf8')
  for (const name of names) t.ok(table.includes(`\`${name}\``) || name.includes('/'), name)
  const imported = names.filter((name) => !native.includes(name))
  const imports = imported.map(
    (name, index) => `import * as m${index} from 'node:${name}'\nconst c${index} = require('node:${name}')`,
  )
  const count = imported.map((_, index) => `typeof m${index}.default === typeof c${index}`).join(', ')
  const folder = t.testdir({ 'index.mjs': `${imports.join('\n')}\nexport const handler = () => [${count}].every(Boolean)` })
  t.equal(await runInIsolate((await bundleFunction(folder)).code, 'exports.handler()'), true)
})

t.test('a built-in module that cannot work does nothing in a branch that never runs', async (t) => {
  const folder = t.testdir({
    'index.mjs': `import { DatabaseSync } from 'node:sqlite'; import { never } from './never.cjs'
      export const handler = async () => {
        if (process.env.NEVER) new DatabaseSync(':memory:')
        if (process.env.NEVER) return (await import('node:inspector')).open()
        return never()
      }`,
    'never.cjs': `exports.never = () => (process.env.NEVER ? require('node:cluster').fork() : 'fine')`,
  })
  t.equal(await runInIsolate((await bundleFunction(folder)).code, 'exports.handler()'), 'fine')
})

t.test('a built-in module that Node.js does not have is refused once, with all that import it', async (t) => {
  const folder = t.testdir({
    'index.ts': "import 'node:nope'\nimport './more.ts'\nexport default () => {}\n",
    'more.ts': "// one\nimport nope from 'node:nope'\nexport { nope }\n",
  })
  const { code, message } = await refusalOf(bundleFunction(folder))
  t.equal(code, 'bundle-failed')
  t.match(
    message,
    /^index\.ts:1:8: node:nope is no module of Node\.js; also imported by more\.ts:2:18\n.*import 'node:nope'\n.*\^{11}$/s,
  )
})

t.test('a part of a built-in module that there is not is refused by its name', async (t) => {
  const folder = t.testdir({ 'index.ts': "import { nope } from 'node:util'\nexport const handler = nope\n" })
  const { code, message } = await refusalOf(bundleFunction(folder))
  t.equal(code, 'bundle-failed')
  t.match(message, /^index\.ts:1:10: node:util has no export "nope"/)
})

t.test('what a package requires inside a try may be missing', async (t) => {
  const folder = t.testdir({
    'index.cjs': "let found = 'none'; try { found = require('node:nope') } catch {}\nexports.handler = () => found",
  })
  t.equal(await runInIsolate((await bundleFunction(folder)).code, 'exports.handler()'), 'none')
})

t.test('what a function does not import is not in its bundle', async (t) => {
  const folder = t.testdir({
    'plain.mjs': 'export const handler = () => [process.env.GREETING, typeof fetch]',
    'path.mjs': "import { join } from 'node:path'; export const handler = () => join('a', 'b')",
  })
  t.ok((await bundleFunction(join(folder, 'plain.mjs'))).code.length < 2000)
  const { code } = await bundleFunction(join(folder, 'path.mjs'))
  t.notOk(code.includes('node:internal/streams/'))
})

t.test('bundled files can be read, by whatever names them, and nothing else; nothing can be written', async (t) => {
  const folder = t.testdir({
    'src': {
      'index.mjs': `import fs, { existsSync, readFileSync } from 'node:fs'; import { readFile } from 'node:fs/promises'; import path from 'node:path'; import old from './old.cjs'
        const code = (use) => { try { return use() } catch (error) { return error.code } }
        export const handler = async () => [readFileSync(new URL('./a.txt', import.meta.url), 'utf8'), readFileSync(path.join(import.meta.dirname, 'sub', 'b.bin')).toString('hex'),
          old, readFileSync('./data.json', 'utf8'), await readFile(new URL('a.txt', import.meta.url), 'utf8'), existsSync('/etc/passwd'), code(() => readFileSync('/etc/passwd')), code(() => readFileSync(new URL('../../../../../../../etc/passwd', import.meta.url))),
          code(() => fs.writeFileSync('/tmp/x', 'y')), fs.readdirSync(path.join(import.meta.dirname, 'sub')), fs.statSync(new URL('./a.txt', import.meta.url)).size, import.meta.dirname]`,
      'old.cjs':
        "'use strict'\nconst fs = require('fs'); module.exports = [fs.readFileSync(__dirname + '/sub/c.txt', 'utf8'), __filename, (function () { return this })() === undefined]",
      'a.txt': 'A',
      'sub': { 'b.bin': Buffer.from([255, 0]), 'c.txt': 'C' },
    },
    'data.json': '{"d":1}',
    'package.json': '{"module":"src/index.mjs"}',
  })
  t.same(await runInIsolate((await bundleFunction(folder)).code, 'exports.handler()'), [
    'A',
    'ff00',
    ['C', '/opt/carpool/function/src/old.cjs', true],
    '{"d":1}',
    'A',
    false,
    'ENOENT',
    'ENOENT',
    'EROFS',
    ['b.bin', 'c.txt'],
    1,
    '/opt/carpool/function/src',
  ])
})

t.test('a module asks of its place in texts, parameters and names of its own without harm', async (t) => {
  const folder = t.testdir({
    'index.mjs': `import { __dirname } from './names.mjs'
      import { other } from './other.mjs'
      import old from './old.cjs'
      export const handler = () => ["import.meta.url is a text", __dirname, other, import.meta.filename, new URL(import.meta.url).pathname, old]`,
    'names.mjs': "export const __dirname = 'my own'",
    'other.mjs': `const root = import.meta.dirname, place = { __dirname: 1 }, given = ((__filename) => __filename)('given')
      const { __dirname } = place
      export const other = [root, __dirname, given]`,
    'old.cjs': `let is = 'else'
      if ('/' !== __dirname) { is = 'compared' }
      module.exports = [is, __dirname, typeof __filename, /__dirname/.source]`,
  })
  t.same(await runInIsolate((await bundleFunction(folder)).code, 'exports.handler()'), [
    'import.meta.url is a text',
    'my own',
    ['/opt/carpool/function', 1, 'given'],
    '/opt/carpool/function/index.mjs',
    '/opt/carpool/function/index.mjs',
    ['compared', '/opt/carpool/function', 'string', '__dirname'],
  ])
})

t.test('no link leads a file of this machine into a function, and no package has what is not its own', async (t) => {
  const machine = t.testdir({
    home: {
      'package.json': '{}',
      'key.txt': 'SECRET of the home folder',
      'other': { 'a.txt': 'SECRET of another folder', 'sub': { 'b.txt': 'SECRET below it' } },
      'project': {
        'package.json': '{}',
        '.env': 'SECRET of the project',
        '.git': { 'config': 'SECRET of git' },
        'shared.txt': 'shared by the project',
        'node_modules': {
          nosy: {
            'package.json': '{"main":"index.js"}',
            'index.js': `const { join } = require('path'), { readFileSync } = require('fs')
              exports.read = () => [readFileSync(join(__dirname, '../../.env')), readFileSync(join(__dirname, '../../shared.txt')),
                readFileSync(join(__dirname, 'own.txt')), readFileSync(join(__dirname, '../../function/link/a.txt'))]`,
            'own.txt': 'its own',
          },
        },
        'function': {
          'index.mjs': `import { readFileSync, readdirSync } from 'node:fs'; import { join } from 'node:path'; import { read } from 'nosy'
            export const handler = () => [read(), readFileSync(new URL('./link/a.txt', import.meta.url)), readFileSync(new URL('./file.txt', import.meta.url)),
              readdirSync(join(import.meta.dirname, 'link')), readdirSync(join(import.meta.dirname, 'link', 'sub')),
              readdirSync(join(import.meta.dirname, 'data')),
              readFileSync(new URL('../.env', import.meta.url)), readFileSync(new URL('../.git/config', import.meta.url)),
              readFileSync(new URL('../../key.txt', import.meta.url)), readFileSync(new URL('../shared.txt', import.meta.url))]`,
          'link': t.fixture('symlink', '../../other'),
          'file.txt': t.fixture('symlink', '../../other/a.txt'),
          'data': {
            'c.txt': 'data of the function',
            '.env.local': 'SECRET of the function',
            'out': t.fixture('symlink', '../../../other'),
          },
        },
      },
      'lone': {
        'index.mjs': `import { readFileSync } from 'node:fs'; export const handler = () => readFileSync(new URL('../key.txt', import.meta.url))`,
      },
    },
  })
  const before = process.env['HOME']
  t.teardown(() => {
    process.env['HOME'] = before
  })
  process.env['HOME'] = join(machine, 'home')
  const { code } = await bundleFunction(join(machine, 'home/project/function'))
  t.same(code.match(/SECRET of [\w ]+/g), null)
  for (const text of ['shared by the project', 'its own', 'data of the function']) t.ok(code.includes(text), text)
  t.notOk((await bundleFunction(join(machine, 'home/lone'))).code.includes('SECRET of'))
})

t.test('a folder that is named has all its files in the function, or is refused', async (t) => {
  const folder = t.testdir({
    'index.mjs': `import { readFileSync } from 'node:fs'; import { join } from 'node:path'
      export const handler = () => readFileSync(join(import.meta.dirname, 'data'))`,
    'data': Object.fromEntries(Array.from({ length: 1001 }, (_, index) => [`${index}.txt`, ''])),
  })
  await t.rejects(bundleFunction(folder), {
    code: 'bundle-failed',
    message:
      'index.mjs: the folder data has more; a folder that code names goes into the function with at most 1000 files and 16 MiB',
  })
})

t.test('process.getBuiltinModule gives the module whose name stands there', async (t) => {
  const folder = t.testdir({
    'index.mjs': `import old from './old.cjs'
      const storage = new (globalThis.process?.getBuiltinModule?.('node:async_hooks').AsyncLocalStorage)()
      export const handler = () => [storage.run('kept', () => storage.getStore()), process.getBuiltinModule("path").join('a', 'b'), old, process.getBuiltinModule('none') === undefined]`,
    'old.cjs': `module.exports = process.getBuiltinModule('util').format('%d', 1)`,
  })
  t.same(await runInIsolate((await bundleFunction(folder)).code, 'exports.handler()'), ['kept', 'a/b', '1', true])
})

t.test('createRequire gives what was bundled', async (t) => {
  const folder = t.testdir({
    'index.mjs': `import { createRequire } from 'node:module'
      const require = createRequire(import.meta.url)
      const code = (use) => { try { return use() } catch (error) { return error.code } }
      export const handler = () => [require('./a.cjs'), require('path').join('a', 'b'), code(() => require('./' + 'b.cjs'))]`,
    'a.cjs': 'module.exports = 1',
  })
  t.same(await runInIsolate((await bundleFunction(folder)).code, 'exports.handler()'), [1, 'a/b', 'MODULE_NOT_FOUND'])
})

t.test('a native addon is called that, with its package and what to use instead', async (t) => {
  const native = { 'index.js': "module.exports = require('node-gyp-build')(__dirname)" }
  const folder = t.testdir({
    'node_modules': { own: { ...native, 'package.json': '{}' }, bcrypt: { ...native } },
    'index.mjs': "import bcrypt from 'bcrypt'\nexport default bcrypt\n",
    'lazy.mjs': "import own from 'own'\nexport const handler = () => own\n",
  })
  const { message } = await refusalOf(bundleFunction(folder))
  t.match(message, /^index\.mjs:1:20: bcrypt is a native addon, .*; use bcryptjs/)
  await t.rejects(runInIsolate((await bundleFunction(join(folder, 'lazy.mjs'))).code, 'exports.handler()'), {
    message: /^own is a native addon, which is made for the machine and cannot run in a function\.$/,
  })
})
