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
 * Has a connection read into one buffer for all, rather than into a new one for each read, which costs as much as to parse a
 * small request.
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
  // Node.js stops reading after a false.
  read[callback] = (length: number): boolean => {
    const bytes = BUFFER.subarray(0, length)
    return parse(bytes) || socket.push(Buffer.from(bytes))
  }
  const { onread } = handle
  // Where it is set at other times, a pause stops reading at once, and it is not noticed that a client leaves.
  handle.onread = function () {
    read[buffer] = BUFFER
    const result = onread.call(this)
    read[buffer] = null
    return result
  }
}

function keysOf(socket: Socket): typeof keys {
  const symbols = Object.getOwnPropertySymbols(socket)
  const [buffer, callback] = [BUFFER_KEY, CALLBACK_KEY].map((name) => symbols.find(({ description }) => description === name))
  return buffer !== undefined && callback !== undefined ? { buffer, callback } : undefined
}
