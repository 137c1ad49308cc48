import type { Socket } from 'node:net'

/** What Node.js reads at most at once, in bytes. */
const READ_BYTES = 65_536
/** For all connections: what was read of one is parsed or copied before the next is read. */
const BUFFER = Buffer.allocUnsafeSlow(READ_BYTES)

/**
 * What `onread` of a client's socket sets in Node.js (`lib/net.js`); a server has no such option. Both are undocumented: where a
 * version of Node.js has other names for them, connections are read as without them.
 */
const [BUFFER_KEY, CALLBACK_KEY] = ['kBuffer', 'kBufferCb']
/** Found in the first socket: all have the same. */
let keys: { readonly buffer: symbol; readonly callback: symbol } | undefined

/** Undocumented. */
interface Handle {
  useUserBuffer?(buffer: Buffer): void
  onread: () => unknown
}

type ReadSocket = Socket & { readonly _handle?: Handle | null; [key: symbol]: unknown }

/**
 * Has a connection read into one buffer for all, rather than into a new one for each read.
 * @param parse takes what was read, which is overwritten once it returns; if it returns false, the stream of the connection gets
 * a copy
 */
export function readIntoBuffer(socket: Socket, parse: (bytes: Buffer) => boolean): void {
  const read = socket as ReadSocket
  const { _handle: handle } = read
  keys ??= keysOf(socket)
  if (keys === undefined || typeof handle?.useUserBuffer !== 'function') return
  const { buffer, callback } = keys
  handle.useUserBuffer(BUFFER)
  read[callback] = (length: number): boolean => {
    read[buffer] = null
    const bytes = BUFFER.subarray(0, length)
    // Node.js stops reading after a false.
    return parse(bytes) || socket.push(copyOf(bytes))
  }
  const { onread } = handle
  // Only while Node.js looks at it in a read. While it is set, a pause stops reading by itself, so that it is not noticed that a
  // client leaves; and after such a pause a resume starts nothing, if nothing was ever pushed to the stream.
  handle.onread = function () {
    read[buffer] = BUFFER
    const result = onread.call(this)
    read[buffer] = null
    return result
  }
}

/** In memory of its own. A slice of the pool of Node.js would keep the whole pool, and ReadTurns counts what is kept. */
export function copyOf(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}

function keysOf(socket: Socket): typeof keys {
  const symbols = Object.getOwnPropertySymbols(socket)
  const [buffer, callback] = [BUFFER_KEY, CALLBACK_KEY].map((name) => symbols.find(({ description }) => description === name))
  return buffer !== undefined && callback !== undefined ? { buffer, callback } : undefined
}
