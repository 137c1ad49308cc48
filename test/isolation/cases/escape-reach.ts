/** Group C1 of the list of attacks, first part: what code can reach. */
import type { IsolationCase } from '../harness/isolation-case.ts'

const LIMITS = { cpuMs: 5_000, wallMs: 20_000, memoryMb: 64 }

/** A call that says what it found that should not be there. */
export function finds(id: string, title: string, handler: string, more: Partial<IsolationCase> = {}): IsolationCase {
  const code = `const found = []; ${handler}; return new OwnResponse(JSON.stringify(found))`
  return {
    id,
    group: 'escape',
    title,
    verdict: 'OK',
    billed: 'full',
    limits: LIMITS,
    expect: { body: '[]' },
    handler: code,
    ...more,
  }
}

/** Looks into everything that can be reached, and gives each object and function once, with its path. */
const WALK = `
  const walk = (roots, visit) => {
    const seen = new Set(), queue = Object.entries(roots)
    for (let index = 0; index < queue.length; index++) {
      const [path, value] = queue[index]
      if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value)) continue
      seen.add(value); visit(value, path)
      let keys = []
      try { keys = Reflect.ownKeys(value) } catch {}
      for (const key of keys) {
        let part
        try { part = Reflect.getOwnPropertyDescriptor(value, key) } catch { continue }
        const name = path + '.' + String(key)
        for (const one of [part?.value, part?.get, part?.set]) queue.push([name, one])
        if (part?.get && path.length < 60) try { queue.push([name + '()', value[key]]) } catch (error) { queue.push([name + '!', error]) }
      }
      try { queue.push([path + '.__proto__', Reflect.getPrototypeOf(value)]) } catch {}
    }
    return seen.size
  }
  const roots = { globalThis, request, env, ctx, self: this }
  try { null.x } catch (error) { roots.error = error }
  try { await fetch(env.CANARY) } catch (error) { roots.refused = error }
  try { new URL('x') } catch (error) { roots.invalid = error }
  try { structuredClone(() => {}) } catch (error) { roots.clone = error }
`

const CONSTRUCTORS = `
  const makers = [Function, (async () => {}).constructor, (function* () {}).constructor, (async function* () {}).constructor]
  const names = ['require', 'module', 'exports', '__dirname', '__filename', 'Buffer', 'global', 'ivm', 'isolate', 'Deno', 'Bun', 'java', 'load', 'print', 'd8', 'gc', 'quit', '$262', 'host', 'bridge', 'boot']
  for (const make of makers) for (const name of names) {
    let value
    try { value = make('return typeof ' + name + ' !== "undefined"')() } catch { continue }
    if (value?.next) value = value.next().value
    if (await value === true) found.push(make.name + ' ' + name)
  }
`

const REACH: readonly IsolationCase[] = [
  finds('E01a', 'the host by constructors of functions', CONSTRUCTORS),
  finds(
    'E01b',
    'the host by constructors of what the runtime gives',
    `
    for (const given of [this, request, env, ctx, globalThis, console, fetch, crypto, request.headers, request.signal, process]) {
      const made = given?.constructor?.constructor?.('return this')()
      if (made !== undefined && made !== globalThis) found.push(String(given))
    }`,
  ),
  finds(
    'E01c',
    'the process of the host',
    `
    if (typeof process === 'object') for (const name of ['binding', '_linkedBinding', 'dlopen', 'mainModule', 'kill', 'exit', 'pid', 'stdout', 'getBuiltinModule', 'report', 'permission', 'memoryUsage']) if (name in process) found.push(name)
    if (Object.values(process.env).some((value) => /PATH|HOME/.test(value))) found.push('environment')`,
  ),
  finds(
    'E01d',
    'the environment of the server',
    `
    const all = JSON.stringify([process.env, env, Object.getOwnPropertyNames(globalThis)])
    for (const name of ['PATH', 'HOME', 'CARPOOL_STATE_DIR', 'CARPOOL_DATA', 'NODE_OPTIONS']) if (name in process.env || name in env) found.push(name)
    if (all.includes('canary' + 'x')) found.push('canary')`,
  ),
  finds(
    'E01e',
    'who called, by arguments and caller',
    `
    const sloppy = new Function('const seen = []; let at = arguments.callee; for (let i = 0; i < 20 && at; i++) { try { at = at.caller } catch { break } if (at) seen.push(String(at).slice(0, 80)) } return seen')
    const callers = [...sloppy(), ...[1].map(sloppy).flat()]
    const hooked = { toString() { return sloppy().join() } }
    try { new Headers({ a: hooked }) } catch {}
    new URLSearchParams({ a: hooked })
    for (const caller of callers) if (/bridge|host|invocation/i.test(caller)) found.push(caller)`,
  ),
  finds(
    'E02',
    'a function of another global, in all that can be reached',
    `${WALK}
    let functions = 0
    const made = []
    const count = walk(roots, (value, path) => {
      if (typeof value !== 'function') return
      functions++
      made.push([path, value])
    })
    for (const [path, value] of made) {
      let self
      try { self = await value.constructor('return this')() } catch { continue }
      if (self?.next) self = (await self.next()).value
      if (typeof self === 'object' && self !== null && self !== globalThis) found.push(path)
    }
    if (count < 1000 || functions < 500) found.push(count + ' reached, ' + functions + ' functions')`,
  ),
  finds(
    'E03',
    'a class of isolated-vm, in all that can be reached',
    `${WALK}
    const methods = ['applySync', 'derefInto', 'copySync', 'createContext', 'evalClosure', 'applySyncPromise', 'compileScript', 'applyIgnored', 'copyInto']
    walk(roots, (value, path) => {
      const tag = Object.prototype.toString.call(value)
      if (/Reference|ExternalCopy|Callback|Isolate|NativeModule/.test(tag)) found.push(path + ' ' + tag)
      for (const method of methods) if (Object.getOwnPropertyDescriptor(value, method)) found.push(path + '.' + method)
    })`,
  ),
  finds(
    'E01f',
    'frames of the host in stacks',
    `
    const sites = []
    Error.prepareStackTrace = (error, frames) => { for (const frame of frames) sites.push(frame); return '' }
    void new Error('x').stack
    try { new Headers({ a: '\\n' }) } catch (error) { void error.stack }
    await fetch(env.CANARY).catch((error) => error.stack)
    Error.prepareStackTrace = undefined
    for (const frame of sites) {
      const own = frame.getThis()
      if (own !== undefined && own !== globalThis && own?.constructor?.constructor?.('return this')() !== globalThis) found.push('this of ' + frame.getFunctionName())
      if (/node:|node_modules|\\/host\\/|isolated/.test(String(frame.getFileName()))) found.push(frame.getFileName())
    }`,
  ),
  finds(
    'E21',
    'shared memory, atomics, WebAssembly, finalizers, weak references and realms',
    `
    for (const name of ['SharedArrayBuffer', 'WebAssembly', 'ShadowRealm']) {
      if (name in globalThis || (0, eval)('typeof ' + name) !== 'undefined') found.push(name)
    }
    for (const name of ['wait', 'waitAsync', 'notify', 'pause']) if (name in Atomics) found.push(name)
    const isNative = (value) => Function.prototype.toString.call(value).includes('[native code]')
    ${WALK}
    walk(roots, (value, path) => {
      const name = typeof value === 'function' ? Object.getOwnPropertyDescriptor(value, 'name')?.value : undefined
      if (/^(?:SharedArrayBuffer|ShadowRealm)$/.test(name)) found.push(path)
      if (/^(?:FinalizationRegistry|WeakRef)$/.test(name) && isNative(value)) found.push(path)
    })
    try { structuredClone(new ArrayBuffer(8), { transfer: [] }) } catch {}
    if (isNative(WeakRef) || isNative(FinalizationRegistry)) found.push('WeakRef')`,
  ),
]

export const ESCAPE_REACH_CASES: readonly IsolationCase[] = REACH
