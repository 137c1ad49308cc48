import { isUtf8 } from 'node:buffer'
import { CarpoolError } from '@carpool/core'
import type { FastifyInstance } from 'fastify'

/** Deeper, or with more values, than anything that the control plane takes. */
const MAX_DEPTH = 16
const MAX_VALUES = 20_000

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b])
const CLOSING: ReadonlySet<number> = new Set([0x5d, 0x7d])

/**
 * Reads bodies as JSON. They are looked over before: a body of some MB may hold millions of empty lists, and to make them would
 * take all of the server's memory. What a deploy sends is large because its texts are.
 */
export function readJsonBodies(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    const bytes = body as Buffer
    try {
      if (!isUtf8(bytes)) throw new CarpoolError('bad-request', 'The body is not valid UTF-8.')
      checkJsonShape(bytes)
    } catch (cause) {
      return done(cause as Error)
    }
    void parse(request, bytes.toString('utf8'), done)
  })
}

/** @throws CarpoolError `bad-request` if it is nested too deeply or has too many values; what is no JSON may pass */
export function checkJsonShape(json: Uint8Array, maxValues = MAX_VALUES): void {
  let depth = 0
  let values = 1
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]!
    if (byte === QUOTE) at = endOfString(json, at)
    else if (OPENING.has(byte)) {
      depth++
      values++
      if (depth > MAX_DEPTH) throw new CarpoolError('bad-request', `The body is nested more than ${MAX_DEPTH} levels deep.`)
    } else if (CLOSING.has(byte)) depth--
    else if (byte === COMMA) values++
    if (values > maxValues) throw new CarpoolError('bad-request', `The body has more than ${maxValues} values.`)
  }
}

/** Where the string ends that begins there. */
function endOfString(json: Uint8Array, start: number): number {
  let end = start
  do {
    end = json.indexOf(QUOTE, end + 1)
    if (end === -1) return json.length
  } while (isEscaped(json, end))
  return end
}

/** Whether an odd number of backslashes stands before. */
function isEscaped(json: Uint8Array, at: number): boolean {
  let backslashes = 0
  while (json[at - 1 - backslashes] === BACKSLASH) backslashes++
  return backslashes % 2 === 1
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
