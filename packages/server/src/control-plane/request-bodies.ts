import { CarpoolError, concurrencyLimitOfOwners } from '@carpool/core'
import { startThread } from '@carpool/core/start-thread'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { readJson } from './read-json.ts'

/** Larger bodies are read in a thread, which takes tens of ms to start. */
const MAX_BYTES_HERE = 512 * 1024

/** What the thread that reads a body says. */
export type ReadBody = { readonly value: unknown } | { readonly fault: string }

/** Reads bodies as JSON: large ones in a thread, so that the server does not stand meanwhile. */
export function readJsonBodies(app: FastifyInstance): void {
  // One at a time, so that they take no more than a core.
  const inTurn = concurrencyLimitOfOwners(1)
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer' },
    async (request: FastifyRequest, bytes: Buffer<ArrayBuffer>) => {
      if (bytes.length <= MAX_BYTES_HERE) return readJson(bytes)
      return inTurn(request.principal.owner, () => readInThread(bytes))
    },
  )
}

function readInThread(bytes: Buffer<ArrayBuffer>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const options = { workerData: bytes, transferList: [bytes.buffer], name: 'carpool-body', env: {} }
    const fail = (cause: unknown): void => reject(new CarpoolError('internal', 'A body could not be read.', { cause }))
    startThread('body-thread', import.meta.url, options, fail).on('message', (read: ReadBody) => {
      if ('value' in read) resolve(read.value)
      else reject(new CarpoolError('bad-request', read.fault))
    })
  })
}

interface BodyBudgetLimits {
  /** Of one owner, in bytes. */
  readonly ownerBytes: number
  /** Of all together, in bytes. */
  readonly totalBytes: number
}

interface BodyShare {
  readonly owner: string
  /** As announced: what is not sent yet may come at any time. */
  readonly bytes: number
  /** Counts, but is never refused: who shall stop the others must not wait for them. */
  readonly isAdmin: boolean
}

/**
 * Limits the bytes of bodies that are being received or worked on.
 * @returns takes a share of it and gives what returns the share, which is to be called once
 * @throws CarpoolError `saturated`, naming the limit
 */
export function bodyBudget({ ownerBytes, totalBytes }: BodyBudgetLimits): (share: BodyShare) => () => void {
  const byOwner = new Map<string, number>()
  let heldBytes = 0
  const add = (owner: string, bytes: number): void => {
    const ofOwner = (byOwner.get(owner) ?? 0) + bytes
    if (ofOwner === 0) byOwner.delete(owner)
    else byOwner.set(owner, ofOwner)
    heldBytes += bytes
  }
  return ({ owner, bytes, isAdmin }) => {
    if (!isAdmin && (byOwner.get(owner) ?? 0) + bytes > ownerBytes) {
      throw saturated(`The requests of ${owner} that are under way may have bodies of ${ownerBytes} bytes in all`)
    }
    if (!isAdmin && heldBytes + bytes > totalBytes) {
      throw saturated(`The requests that are under way may have bodies of ${totalBytes} bytes in all`)
    }
    add(owner, bytes)
    return () => add(owner, -bytes)
  }
}

function saturated(limit: string): CarpoolError {
  return new CarpoolError('saturated', `${limit}, which this one would exceed; try again soon.`)
}
