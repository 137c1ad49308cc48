import { NOBODY, type SocketEnd } from '@carpool/core'
import type { EgressSocket, StreamPart } from '@carpool/egress'
import type { SocketOpen, StreamData } from '@carpool/wire'
import type { EgressRelayParts, FetchingHost } from './egress-relay.ts'

/** Carries the sockets of functions from the hosts to the egress, and what comes for them back. */
export class SocketRelay {
  readonly #parts: EgressRelayParts
  readonly #open = new WeakMap<FetchingHost, Map<number, EgressSocket>>()

  constructor(parts: EgressRelayParts) {
    this.#parts = parts
  }

  find(host: FetchingHost, socket: number): EgressSocket | undefined {
    return this.#open.get(host)?.get(socket)
  }

  /** @param target as the host gave it */
  open(host: FetchingHost, { socket, revision, id }: Pick<SocketOpen, 'socket' | 'revision' | 'id'>, target: string): void {
    const { egress, revisionOf, headersFor, onUnclaimed, socketsChanged } = this.#parts
    const whose = revisionOf(revision)
    if (whose === undefined) {
      return host.sayOfStream(NOBODY, { type: 'socket-closed', socket, bytesOut: 0, bytesIn: 0 }, NOT_DEPLOYED)
    }
    let open = this.#open.get(host)
    if (open === undefined) this.#open.set(host, (open = new Map()))
    // A host that uses a number twice has only itself to blame, but the first socket must not be lost sight of.
    open.get(socket)?.stop()
    const { functionName, owner, egress: hosts } = whose
    const carpoolHeaders = headersFor?.({ revision, ...(id !== undefined && { id }) })
    const isOpen = (): boolean => open.get(socket) === opened
    const opened = egress.openSocket(
      {
        target,
        functionName,
        owner,
        ...(hosts !== undefined && { hosts }),
        ...(carpoolHeaders !== undefined && { carpoolHeaders }),
      },
      {
        connected: (text) => {
          if (isOpen()) host.sayOfStream(whose, { type: 'socket-connected', socket }, text)
        },
        data: ({ bytes, text, ...flags }) => {
          if (isOpen()) host.sayOfStream(whose, { type: 'stream-data', of: 'socket', number: socket, ...flags }, text, bytes)
        },
        credit: (bytes) => {
          if (isOpen()) host.sayOfStream(whose, { type: 'stream-credit', of: 'socket', number: socket, bytes })
        },
        closed: (end, bytes) => {
          socketsChanged?.(functionName, -1)
          if (!isOpen()) return onUnclaimed?.(host, revision, bytes)
          open.delete(socket)
          host.sayOfStream(whose, { type: 'socket-closed', socket, ...bytes }, end)
        },
      },
    )
    open.set(socket, opened)
    socketsChanged?.(functionName, 1)
  }

  /** The host is gone: what still went over is told, and nothing else. */
  stopAll(host: FetchingHost): void {
    const open = this.#open.get(host)
    if (open === undefined) return
    const sockets = [...open.values()]
    open.clear()
    for (const socket of sockets) socket.stop()
  }
}

/** What a host says as a part. It may say anything. */
export function partOf({ end, message, more }: StreamData, text: string, bytes: Uint8Array<ArrayBuffer>): StreamPart {
  return {
    bytes,
    ...(end === true && { end }),
    ...((message === 'text' || message === 'bytes') && { message }),
    ...(more === true && { more }),
    ...(text !== '' && { text }),
  }
}

const NOT_DEPLOYED = JSON.stringify({
  ok: false,
  code: 'EACCES',
  message: 'The function is not deployed any more.',
} satisfies SocketEnd)
