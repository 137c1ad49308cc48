import { Buffer } from 'node:buffer'
import crypto from 'node:crypto'
import tls from 'node:tls'
import zlib from 'node:zlib'
import { bundleFunction } from '../../src/index.ts'
import { Guest } from '../../../runtime/test/support/guest.ts'
import fc from 'fast-check'
import t from 'tap'

const NAMES = ['crypto', 'tls', 'zlib', 'Buffer', 'input']
const AsyncFunction = (async () => {}).constructor as new (...args: string[]) => (...args: unknown[]) => Promise<unknown>

/** Runs code, the body of an async function with the modules and `input`, and gives what it returns by way of JSON. */
export type Evaluate = (code: string, input?: unknown) => Promise<unknown>

const SOURCE = `
  import crypto from 'node:crypto'
  import tls from 'node:tls'
  import zlib from 'node:zlib'
  import { Buffer } from 'node:buffer'
  const AsyncFunction = (async () => {}).constructor
  export default {
    async fetch(request) {
      const { code, input } = JSON.parse(await request.text())
      return Response.json({ value: await new AsyncFunction(${NAMES.map((name) => `'${name}'`).join()}, code)(crypto, tls, zlib, Buffer, input) })
    },
  }`

const { code } = await bundleFunction(t.testdir({ 'index.mjs': SOURCE }))

/** A function with the modules, in the real runtime. */
export function inGuest(memoryMb = 128): { readonly evaluate: Evaluate; readonly guest: Guest } {
  const guest = new Guest(memoryMb).load(`(${code.trim().replace(/;$/, '')})(carpoolSupport_)`)
  if (guest.loaded?.['ok'] !== true) throw new Error(JSON.stringify(guest.loaded))
  const evaluate: Evaluate = async (text, input) => {
    const { body } = guest.call({ bodyKind: 'text', body: JSON.stringify({ code: text, input }) })
    return (JSON.parse(body) as { value: unknown }).value
  }
  return { evaluate, guest }
}

export const inNode: Evaluate = async (text, input) => {
  const value = await new AsyncFunction(...NAMES, text)(crypto, tls, zlib, Buffer, input)
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value))
}

/** The same code gives the same in both. */
export async function same(evaluate: Evaluate, code: string, input: fc.Arbitrary<unknown>, numRuns = 40): Promise<void> {
  await fc.assert(
    fc.asyncProperty(input, async (given) => {
      t.same(await evaluate(code, given), await inNode(code, given))
    }),
    { numRuns, endOnFailure: true },
  )
}

/** What `write` makes in one of them, `read` takes in the other, both ways. */
export async function exchanged(
  evaluate: Evaluate,
  [write, read]: readonly [string, string],
  input: fc.Arbitrary<object>,
  numRuns = 8,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(input, async (given) => {
      for (const [from, to] of [
        [evaluate, inNode],
        [inNode, evaluate],
      ] as const) {
        t.equal(await to(read, { ...given, made: await from(write, given) }), true)
      }
    }),
    { numRuns, endOnFailure: true },
  )
}

export const hexBytes = (minLength: number, maxLength = minLength): fc.Arbitrary<string> =>
  fc.uint8Array({ minLength, maxLength }).map((bytes) => bytes.toHex())
