/** A function that imports `.wasm` files is deployed with them, and what is wrong with one refuses the deploy. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { moduleOf } from '../../packages/runtime/test/support/wasm.ts'
import { startServer } from '../support/server.ts'

const ADD = Buffer.from(moduleOf([]))
const BROKEN = Buffer.from([...ADD.subarray(0, 8), 1, 1, 0xff])
/** Its start function loops. */
const LOOPING = Buffer.from('AGFzbQEAAAABBAFgAAADAgEACAEACgkBBwADQAwACws=', 'base64')

t.test('functions with WebAssembly', async (t) => {
  const server = await startServer(t)
  const deploy = async (source: string, wasm: Uint8Array, name = 'app') => {
    const folder = server.write({
      'index.js': source,
      'carpool.config.json': '{"timeoutMs": 500, "memoryMb": 64, "cpuMs": 5000}',
    })
    writeFileSync(join(folder, 'module.wasm'), wasm)
    return server.carpool('deploy', folder, '--name', name, '--json')
  }
  const adds = `
    import module from './module.wasm'
    const { exports } = await WebAssembly.instantiate(module)
    export default () => Response.json(exports.add(2, 3))`

  const first = await deploy(adds, ADD)
  t.equal(first.code, 0, first.stdout)
  t.equal(await (await server.get('/app/')).text(), '5')
  const refused: ReadonlyArray<readonly [wasm: Uint8Array, message: RegExp]> = [
    [BROKEN, /CompileError: module\.wasm: /],
    [LOOPING, /500 ms/],
    [
      Buffer.from(moduleOf([{ initial: 2000 }])),
      /RangeError: A WebAssembly memory that may grow to 2000 pages of 64 KiB does not fit/,
    ],
  ]
  for (const [wasm, message] of refused) {
    const { code, stdout } = await deploy(adds, wasm)
    t.equal(code, 1)
    t.match(JSON.parse(stdout), { error: { code: 'load-failed' } })
    t.match(stdout, message)
  }
  t.equal(await (await server.get('/app/')).text(), '5', 'what was live goes on serving')

  // More than would fit into the addresses of a process if each took the 8 GiB that V8 may leave free behind it.
  const keepsMany = `
    import module from './module.wasm'
    const kept = []
    export default () => {
      while (kept.length < 17_000) kept.push(new WebAssembly.Memory({ initial: 0, maximum: 0 }))
      return new Response(String(kept.length))
    }`
  const makesOne = `
    import module from './module.wasm'
    export default async () => Response.json((await WebAssembly.instantiate(module)).exports.add(2, 3))`
  t.equal((await deploy(keepsMany, ADD, 'many')).code, 0)
  t.equal((await deploy(makesOne, Buffer.from(moduleOf([{ initial: 1 }])), 'one')).code, 0)
  t.equal(await (await server.get('/many/')).text(), '17000')
  t.equal(await (await server.get('/one/')).text(), '5')
})
