/** What ECMA-429, the Minimum Common Web API, names, and which of it a guest has. */
import { Guest } from '../../packages/runtime/test/support/guest.ts'

const INTERFACES = `AbortController AbortSignal Blob ByteLengthQueuingStrategy CompressionStream CountQueuingStrategy Crypto CryptoKey
  CustomEvent DecompressionStream DOMException ErrorEvent Event EventTarget File FormData Headers MessageChannel MessageEvent
  MessagePort Performance PromiseRejectionEvent ReadableByteStreamController ReadableStream ReadableStreamBYOBReader
  ReadableStreamBYOBRequest ReadableStreamDefaultController ReadableStreamDefaultReader Request Response SubtleCrypto TextDecoder
  TextDecoderStream TextEncoder TextEncoderStream TransformStream TransformStreamDefaultController URL URLPattern URLSearchParams
  WebAssembly.Exception WebAssembly.Global WebAssembly.Instance WebAssembly.Memory WebAssembly.Module WebAssembly.Table
  WebAssembly.Tag WritableStream WritableStreamDefaultController WritableStreamDefaultWriter`

const GLOBALS = `atob btoa clearInterval clearTimeout console crypto fetch globalThis navigator.userAgent onerror onrejectionhandled
  onunhandledrejection performance.now performance.timeOrigin queueMicrotask reportError self setInterval setTimeout structuredClone
  WebAssembly.compile WebAssembly.compileStreaming WebAssembly.CompileError WebAssembly.instantiate
  WebAssembly.instantiateStreaming WebAssembly.JSTag WebAssembly.LinkError WebAssembly.RuntimeError WebAssembly.validate`

const wordsOf = (text: string): string[] => text.split(/\s+/).toSorted()

export interface Presence {
  readonly name: string
  readonly kind: 'interface' | 'global'
  /** With WebAssembly: in functions that import a `.wasm` file, or if the operator turns it on. */
  readonly state: 'there' | 'with WebAssembly' | 'not there'
}

/** Asks two guests, one of which imports WebAssembly. */
export function ecma429(): Presence[] {
  const named = [
    ...wordsOf(INTERFACES).map((name) => ({ name, kind: 'interface' as const })),
    ...wordsOf(GLOBALS).map((name) => ({ name, kind: 'global' as const })),
  ]
  const [plain, withWebAssembly] = [found(named, false), found(named, true)]
  return named.map(({ name, kind }, index) => ({
    name,
    kind,
    state: plain[index] === true ? 'there' : withWebAssembly[index] === true ? 'with WebAssembly' : 'not there',
  }))
}

function found(named: ReadonlyArray<{ readonly name: string; readonly kind: string }>, webAssembly: boolean): boolean[] {
  const imported = webAssembly ? 'carpoolSupport_.webAssembly({}), ' : ''
  const probe = `(${imported}{ default: { fetch: () => Response.json(${JSON.stringify(named)}.map(({ name, kind }) => {
    const path = name.split('.')
    const last = path.pop()
    const holder = path.reduce((value, key) => value?.[key], globalThis)
    if (holder === undefined || !(last in holder)) return false
    return kind === 'global' || (typeof holder[last] === 'function' && typeof holder[last].prototype === 'object')
  })) } })`
  const guest = new Guest().load(probe)
  try {
    return JSON.parse(guest.call().body) as boolean[]
  } finally {
    guest.isolate.dispose()
  }
}

const WHY: ReadonlyArray<readonly [RegExp, string]> = [
  [/Streaming$/, 'what compiles while it streams in ends outside of entries'],
  [/JSTag$/, 'it would catch what the runtime throws'],
]

/** The table, as Markdown. */
export function renderEcma429(presences: readonly Presence[]): string {
  const count = (state: Presence['state']): number => presences.filter((one) => one.state === state).length
  const rows = (['interface', 'global'] as const).map((kind) => {
    const of = (state: Presence['state']): string =>
      presences
        .filter((one) => one.kind === kind && one.state === state)
        .map(({ name }) => `\`${name}\``)
        .join(', ') || '–'
    return `| ${kind}s | ${of('there')} | ${of('with WebAssembly')} | ${of('not there')} |`
  })
  const missing = presences.filter(({ state }) => state === 'not there')
  const why = WHY.filter(([pattern]) => missing.some(({ name }) => pattern.test(name))).map(
    ([pattern, text]) =>
      `- ${missing
        .filter(({ name }) => pattern.test(name))
        .map(({ name }) => `\`${name}\``)
        .join(', ')}: ${text}.`,
  )
  return [
    `${count('there')} of ${presences.length} names are there, ${count('with WebAssembly')} more in functions that import a \`.wasm\` file, or if the
operator turns WebAssembly on.`,
    ['| | there | with WebAssembly | not there |', '| --- | --- | --- | --- |', ...rows].join('\n'),
    ...(why.length > 0 ? [why.join('\n')] : []),
  ].join('\n\n')
}
