import { Buffer as PortedBuffer } from 'unenv/node/internal/buffer/buffer'

/**
 * The free identifier `Buffer` in a function. A `var`, and not a function passed on: CommonJS modules stand in another scope of the
 * bundle than this one, and only variables can be lifted.
 */
// oxlint-disable-next-line no-var
export var Buffer: typeof globalThis.Buffer =
  globalThis.Buffer ?? withBase64Url(PortedBuffer as unknown as typeof globalThis.Buffer)

/** Adds the encoding that the ported Buffer lacks. It reads base64url as base64, but does not know the name, nor write it. */
function withBase64Url(ported: typeof globalThis.Buffer): typeof globalThis.Buffer {
  // oxlint-disable-next-line typescript/unbound-method -- each is called on its own object
  const { prototype, from, byteLength, isEncoding } = ported
  const { toString, write } = prototype
  const isUrl = (encoding: unknown): boolean => typeof encoding === 'string' && encoding.toLowerCase() === 'base64url'
  const known = <T>(encoding: T): T | 'base64' => (isUrl(encoding) ? 'base64' : encoding)
  const patch = (target: object, name: string, value: unknown): void => {
    Object.defineProperty(target, name, { value, writable: true, configurable: true })
  }
  type Call = (...args: unknown[]) => unknown
  const call = (method: unknown, self: unknown, args: unknown[]): unknown => (method as Call).apply(self, args)

  patch(ported, 'isEncoding', (encoding: unknown) => isUrl(encoding) || call(isEncoding, ported, [encoding]))
  patch(ported, 'byteLength', (value: unknown, encoding: unknown) => call(byteLength, ported, [value, known(encoding)]))
  patch(ported, 'from', (...args: unknown[]) => call(from, ported, args.map(known)))
  patch(prototype, 'write', function (this: unknown, ...args: unknown[]) {
    return call(write, this, [args[0], ...args.slice(1).map(known)])
  })
  patch(prototype, 'toString', function (this: unknown, encoding: unknown, ...range: unknown[]) {
    const text = call(toString, this, [known(encoding), ...range]) as string
    return isUrl(encoding) ? text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '') : text
  })
  return ported
}
