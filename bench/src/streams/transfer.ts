import { once } from 'node:events'
import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import type { Workload } from './workloads.ts'

/** As many bytes as are written at once. */
export const PART_BYTES = 64 * 1024

const PART = Buffer.from(Uint8Array.from({ length: PART_BYTES }, (_, index) => byteAt(index)))

/** The byte at an offset of every body that is sent or made. */
function byteAt(offset: number): number {
  return (offset * 31) % 256
}

/** Where a transfer is, while it runs. */
export interface Progress {
  /** Bytes that have passed the slower of the two ends that there are. */
  movedBytes: number
}

/**
 * Moves bytes through a server, over a connection of its own.
 * @returns time from the request to the last byte of the answer, in ms
 * @throws Error if a byte is missing, or the first or last one of a part is another
 */
export async function transfer(url: string, workload: Workload, bytes: number, progress: Progress): Promise<number> {
  const { name, isSent, isReceived } = workload
  const startMs = performance.now()
  const request = httpRequest(url, {
    agent: false,
    method: isSent ? 'POST' : 'GET',
    ...(isSent && { headers: { 'content-length': bytes } }),
  })
  const answer = read(request, workload, progress)
  const sent = isSent ? send(request, bytes, isReceived ? undefined : progress) : Promise.resolve(request.end())
  const [{ status, received, text }] = await Promise.all([answer, sent])
  if (status !== 200) throw new Error(`${name} was answered with ${status}: ${text}`)
  if (!isReceived && text !== String(bytes)) throw new Error(`Of ${bytes} bytes the server has counted ${text}.`)
  if (isReceived && received !== bytes) throw new Error(`Of ${bytes} bytes ${received} have come.`)
  return performance.now() - startMs
}

async function send(request: ClientRequest, bytes: number, progress: Progress | undefined): Promise<void> {
  for (let sent = 0; sent < bytes; sent += PART_BYTES) {
    if (!request.write(PART)) await once(request, 'drain')
    if (progress !== undefined) progress.movedBytes = sent
  }
  request.end()
}

interface Received {
  readonly status: number
  readonly received: number
  /** The answer, where it is short. */
  readonly text: string
}

async function read(request: ClientRequest, { name, isReceived, mask }: Workload, progress: Progress): Promise<Received> {
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const { statusCode: status = 0 } = response
  let received = 0
  let text = ''
  response.on('data', (part: Buffer) => {
    if (isReceived && status === 200) {
      const last = received + part.length - 1
      if (part[0] !== (byteAt(received) ^ mask) || part.at(-1) !== (byteAt(last) ^ mask)) {
        response.destroy(new Error(`${name}: a byte is another after ${received}.`))
      }
      progress.movedBytes = last + 1
    } else text += part.toString('latin1')
    received += part.length
  })
  await once(response, 'end')
  return { status, received, text }
}
