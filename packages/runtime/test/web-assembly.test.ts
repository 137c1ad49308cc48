import fc from 'fast-check'
import t from 'tap'
import { Guest, run } from './support/guest.ts'
import { escapingModule, leb, moduleOf, section } from './support/wasm.ts'

const LIMITS = { memoryMb: 64, cpuMs: 1_000, wallMs: 30_000, streamMs: 0, idleMs: 0, concurrency: 1 }
const ON = { webAssembly: true, limits: LIMITS } as const
/** A quarter of 64 MiB, in pages of 64 KiB. */
const CAP_PAGES = 256

const bytes = (module: readonly number[]): string => `new Uint8Array(${JSON.stringify(module)})`
const ADD = bytes(moduleOf([]))
/** Runs a function body with `outcome`, which gives what code returns, or name and message of what it throws or rejects with. */
const on = (body: string): unknown =>
  run(
    `const outcome = async (code) => { try { return await code() } catch (error) { return error.name + ': ' + error.message } }
    ${body}`,
    {},
    ON,
  )

t.test('WebAssembly is only there if it is asked for', (t) => {
  t.same(run(`return [typeof WebAssembly, 'WebAssembly' in globalThis]`), ['undefined', false])
  t.same(on(`return Reflect.ownKeys(WebAssembly).map(String).toSorted()`), [
    'CompileError',
    'Exception',
    'Global',
    'Instance',
    'LinkError',
    'Memory',
    'Module',
    'RuntimeError',
    'Symbol(Symbol.toStringTag)',
    'Table',
    'Tag',
    'compile',
    'instantiate',
    'validate',
  ])
  t.end()
})

t.test('Modules are compiled and instantiated, at once and by promises', (t) => {
  t.same(
    on(`const bytes = ${ADD}, module = new WebAssembly.Module(bytes), instance = new WebAssembly.Instance(module)
    const both = await WebAssembly.instantiate(bytes.buffer), one = await WebAssembly.instantiate(module), compiled = await WebAssembly.compile(new DataView(bytes.buffer))
    return [instance.exports.add(2, 3), both.instance.exports.add(3, 4), one.exports.add(4, 5), new WebAssembly.Instance(compiled).exports.add(5, 6), WebAssembly.validate(bytes), WebAssembly.validate(bytes.subarray(1))]`),
    [5, 7, 9, 11, true, false],
  )
  t.end()
})

t.test('Classes are those of their instances, and can be extended', (t) => {
  t.same(
    on(`class Own extends WebAssembly.Module {}
    const module = new Own(${ADD}), instance = new WebAssembly.Instance(module), memory = new WebAssembly.Memory({ initial: 1 })
    return [
      module instanceof WebAssembly.Module, module instanceof Own, instance.constructor === WebAssembly.Instance, memory.constructor === WebAssembly.Memory,
      WebAssembly.Module.prototype.constructor === WebAssembly.Module, Object.prototype.toString.call(memory), WebAssembly.Memory.name, WebAssembly.Memory.length,
      WebAssembly.Module.exports(module).length, String(WebAssembly.Memory), String(WebAssembly.instantiate), Object.prototype.toString.call(WebAssembly),
    ]`),
    [
      true,
      true,
      true,
      true,
      true,
      '[object WebAssembly.Memory]',
      'Memory',
      1,
      1,
      'function Memory() { [native code] }',
      'function instantiate() { [native code] }',
      '[object WebAssembly]',
    ],
  )
  t.end()
})

t.test('What cannot be compiled or linked is told', (t) => {
  const told =
    on(`const importing = ${bytes([...moduleOf([]).slice(0, 8), ...section(1, [1, 0x60, 0, 0]), ...section(2, [1, 1, 0x61, 1, 0x62, 0, 0])])}
    return Promise.all([
      outcome(() => new WebAssembly.Module(new Uint8Array(4))), outcome(() => WebAssembly.compile(new Uint8Array([1, 2]))), outcome(() => WebAssembly.instantiate('text')),
      outcome(() => WebAssembly.Module(${ADD})), outcome(() => WebAssembly.instantiate(importing)), outcome(() => WebAssembly.instantiate(importing, { a: { b: 1 } })),
      outcome(() => new WebAssembly.Instance({})), outcome(() => WebAssembly.validate('text')), outcome(() => new WebAssembly.Memory()), outcome(() => new WebAssembly.Memory({ initial: -1 })),
      outcome(() => new WebAssembly.Memory({ initial: 2, maximum: 1 })), outcome(() => new WebAssembly.Memory({ initial: 70000 })),
    ])`) as string[]
  const kinds = [
    'CompileError',
    'CompileError',
    'TypeError',
    'TypeError',
    'TypeError',
    'LinkError',
    'TypeError',
    'TypeError',
    'TypeError',
    'TypeError',
    'RangeError',
    'RangeError',
  ]
  t.same(
    told.map((text) => text.replace(/:.*/s, '')),
    kinds,
    told.join('\n'),
  )
  t.end()
})

t.test('Nothing is shared, and nothing has addresses of 64 bits', (t) => {
  t.same(
    on(`let reads = 0
    const turning = { initial: 1, maximum: 1, get shared() { return reads++ > 0 } }
    return Promise.all([
      outcome(() => new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true })), outcome(() => new WebAssembly.Memory({ initial: 1n, address: 'i64' })),
      outcome(() => new WebAssembly.Module(${bytes(moduleOf([{ initial: 1, maximum: 1, flags: 2 }]))})), outcome(() => WebAssembly.compile(${bytes(moduleOf([{ initial: 1, flags: 4 }]))})),
      WebAssembly.validate(${bytes(moduleOf([{ initial: 1, maximum: 1, flags: 2 }]))}), outcome(() => new WebAssembly.Memory(turning).buffer.constructor.name), reads, typeof SharedArrayBuffer,
    ])`),
    [
      'TypeError: WebAssembly.Memory cannot be shared.',
      'TypeError: WebAssembly.Memory has addresses of 32 bits only.',
      'CompileError: Shared memory is not available.',
      'CompileError: Memory with addresses of 64 bits is not available.',
      false,
      'ArrayBuffer',
      1,
      'undefined',
    ],
  )
  t.end()
})

t.test('A memory grows as far as it says, but no further than a quarter of the memory limit', (t) => {
  const reached = (memory: string): string =>
    `(() => { const memory = ${memory}; let pages = memory.buffer.byteLength / 65536; try { for (;; pages++) memory.grow(1) } catch (error) { return [pages, error.name] } })()`
  const within = (type: object): string =>
    `(() => { const { grow, memory } = new WebAssembly.Instance(new WebAssembly.Module(${bytes(moduleOf([type as { initial: number }]))})).exports; while (grow(1) !== -1); return memory.buffer.byteLength / 65536 })()`
  t.same(
    on(
      `return [${reached('new WebAssembly.Memory({ initial: 1 })')}, ${reached('new WebAssembly.Memory({ initial: 1, maximum: 3 })')}, ${reached('new WebAssembly.Memory({ initial: 0, maximum: 60000 })')}, ${reached('new WebAssembly.Memory({ initial: 300 })')}]`,
    ),
    [
      [CAP_PAGES, 'RangeError'],
      [3, 'RangeError'],
      [CAP_PAGES, 'RangeError'],
      [300, 'RangeError'],
    ],
  )
  t.same(
    on(
      `return [${[{ initial: 1 }, { initial: 1, maximum: 3 }, { initial: 0, maximum: 60_000 }, { initial: 300, maximum: 400 }].map(within).join()}]`,
    ),
    [CAP_PAGES, 3, CAP_PAGES, 300],
  )
  t.end()
})

t.test('Memories count against the memory limit, whatever is kept of them', (t) => {
  const TOO_MUCH =
    /^RangeError: A WebAssembly memory that may grow to 256 pages of 64 KiB does not fit into what is left of the memory limit of 64 MiB\.$/
  const kept: Readonly<Record<string, string>> = {
    'memories': `new WebAssembly.Memory({ initial: 1 })`,
    'instances': `new WebAssembly.Instance(module)`,
    'exports': `new WebAssembly.Instance(module).exports`,
    'functions': `new WebAssembly.Instance(module).exports.grow`,
    'memories of instances': `new WebAssembly.Instance(module).exports.memory`,
    'instances of several memories': `new WebAssembly.Instance(several)`,
    'functions of instances that failed': `(() => { let given; try { new WebAssembly.Instance(escaping, { a: { b: (grow) => { given = grow } } }) } catch (error) { if (error instanceof RangeError) throw error } given(1); return given })()`,
  }
  for (const [title, make] of Object.entries(kept)) {
    const guest = new Guest(64).load(
      `(() => { const module = new WebAssembly.Module(${bytes(moduleOf([{ initial: 1 }]))}), escaping = new WebAssembly.Module(${bytes(escapingModule())}), several = new WebAssembly.Module(${bytes(
        moduleOf([
          { initial: 1, maximum: 128 },
          { initial: 1, maximum: 128 },
        ]),
      )})
      const kept = []
      return { default: { fetch() { try { for (let count = 0; count < 50; count++) kept.push(${make}); return new Response('none') } catch (error) { return new Response(kept.length + ' ' + error) } } } } })()`,
      ON,
    )
    const [, count, message] = /^(\d+) (.*)$/.exec(guest.call().body) ?? []
    t.ok(Number(count) >= 2 && Number(count) <= 4, `${title}: ${count}`)
    t.match(message, TOO_MUCH, title)
  }
  t.end()
})

t.test('Modules count with their code', (t) => {
  const size = 4_000_000
  // A section that means nothing, which is called "a".
  const head = [...moduleOf([]), 0, ...leb(size), 1, 0x61]
  t.match(
    on(`const bytes = new Uint8Array(${head.length - 2 + size}), kept = []
    bytes.set(${JSON.stringify(head)})
    return [await outcome(() => { for (;;) kept.push(new WebAssembly.Module(bytes)) }), kept.length]`),
    [
      /^RangeError: The code of a WebAssembly module of \d+ bytes does not fit into what is left of the memory limit of 64 MiB\.$/,
      Number,
    ],
  )
  t.end()
})

t.test('Memory that nobody keeps is free again', (t) => {
  const guest = new Guest(64).load(
    `(() => { const module = new WebAssembly.Module(${bytes(moduleOf([{ initial: 1 }]))})
    return { default: { fetch() { let sum = 0; for (let count = 0; count < 100; count++) { const { grow, memory } = new WebAssembly.Instance(module).exports; grow(10); sum += memory.buffer.byteLength } return new Response(sum) } } } })()`,
    ON,
  )
  t.equal(guest.call().body, String(100 * 11 * 65_536))
  t.end()
})

t.test('However a module is written, its memories end at the cap', (t) => {
  const guest = new Guest(64).load(
    `({ default: { async fetch(request) {
      const { module, options } = await request.json()
      let instance
      try { instance = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(module))) } catch (error) { return new Response('refused ' + error) }
      const { memory } = instance.exports
      if (!(memory instanceof WebAssembly.Memory)) return new Response('none')
      const initial = memory.buffer.byteLength / 65536
      try { memory.grow(65536 - initial); return new Response('grew') } catch {}
      try { memory.grow(Math.max(0, ${CAP_PAGES} + 1 - initial)); return new Response(initial > ${CAP_PAGES} ? 'held' : 'grew') } catch { return new Response('held') }
    } } })`,
    ON,
  )
  const ask = (module: readonly number[]): string =>
    guest.call({ method: 'POST', bodyKind: 'text', body: JSON.stringify({ module }) }).body
  const plain = moduleOf([{ initial: 1, maximum: 65_536 }])
  t.equal(ask(plain), 'held')
  // The numbers of a section may be longer than they need to be.
  const padded = plain.flatMap((byte, index) =>
    plain[index - 1] === 5 && byte === plain[index] && index === plain.indexOf(5) + 1
      ? [byte | 0x80, 0x80, 0x80, 0x80, 0]
      : [byte],
  )
  t.not(padded.length, plain.length)
  t.equal(ask(padded), 'held')
  const held = { held: 0, refused: 0 }
  fc.assert(
    fc.property(
      fc.record({
        initial: fc.oneof(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 0, max: 70_000 })),
        maximum: fc.integer({ min: 0, max: 70_000 }),
        flags: fc.constantFrom(0, 0, 0, 0, 0, 1, 2, 4, 8),
        has: fc.boolean(),
      }),
      fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 2 }),
      ({ initial, maximum, flags, has }, changes) => {
        const module = moduleOf([{ initial, flags, ...(has && { maximum }) }])
        for (const [at, byte] of changes) module[at % module.length] = byte
        const told = ask(module)
        t.match(told, /^(?:held|none|refused)/, JSON.stringify(module))
        if (told === 'held') held.held++
        else held.refused++
      },
    ),
    { numRuns: 300 },
  )
  t.ok(held.held > 20 && held.refused > 20, JSON.stringify(held))
  t.same(leb(300), [0xac, 2])
  t.end()
})
