import { connect, type Socket } from 'node:net'
import { ResponseReader, type Answer } from './response-reader.ts'

interface Waiting {
  resolve(answer: Answer): void
  reject(error: Error): void
}

/** A connection that is kept and carries one request at a time. */
export class HttpConnection {
  readonly #socket: Socket
  readonly #host: string
  readonly #reader = new ResponseReader()
  #waiting: Waiting | undefined
  #isOpen = true
  #onClose: () => void = () => {}

  private constructor(socket: Socket, host: string) {
    this.#socket = socket
    this.#host = host
    socket.setNoDelay(true)
    socket.on('data', (bytes: Buffer) => this.#read(bytes))
    socket.on('error', (error) => this.#end(error))
    socket.on('end', () => this.#end(new ConnectionClosed()))
    socket.on('close', () => this.#end(new ConnectionClosed()))
  }

  /** @throws the system's error if there is no connection */
  static async open(origin: URL): Promise<HttpConnection> {
    const { promise, resolve, reject } = Promise.withResolvers<Socket>()
    const socket = connect({ host: origin.hostname, port: Number(origin.port) })
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      resolve(socket)
    })
    return new HttpConnection(await promise, origin.host)
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Told once, when the connection is of no more use. */
  set onClose(listener: () => void) {
    this.#onClose = listener
  }

  /** @throws Error with a code if the connection breaks, {@link ConnectionClosed} if the server closes it */
  request(method: 'GET' | 'POST', path: string): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    if (!this.#isOpen) {
      reject(new ConnectionClosed())
      return promise
    }
    this.#waiting = { resolve, reject }
    const length = method === 'POST' ? 'content-length: 0\r\n' : ''
    this.#socket.write(`${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n${length}\r\n`, 'latin1')
    return promise
  }

  /** Leaves, whether or not an answer is under way. */
  close(reason: Error = new ConnectionClosed()): void {
    this.#end(reason)
  }

  #read(bytes: Buffer): void {
    const waiting = this.#waiting
    if (waiting === undefined) return this.#end(new Error('Bytes came that nobody asked for.'))
    try {
      const answer = this.#reader.read(bytes)
      if (answer === undefined) return
      this.#waiting = undefined
      if (answer.closes) this.#end(new ConnectionClosed())
      waiting.resolve(answer)
    } catch (error) {
      this.#end(error as Error)
    }
  }

  #end(reason: Error): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#socket.destroy()
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.reject(reason)
    this.#onClose()
  }
}

/** The other side closed the connection in good order, as it may unless it owes an answer. */
export class ConnectionClosed extends Error {
  readonly code = 'CLOSED'
}

/** The client had no answer in time and left. */
export class ClientLeft extends Error {
  readonly code = 'left'
}
