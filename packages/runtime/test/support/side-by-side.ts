import { Guest } from './guest.ts'

const AsyncFunction = (async () => {}).constructor as new (...args: string[]) => (input: unknown) => Promise<unknown>

/** What code under test may use, in a guest and in Node.js. */
const HELPERS = `
  const hex = (bytes) => new Uint8Array(bytes.buffer ?? bytes, bytes.byteOffset, bytes.byteLength).toHex()
  const un = (text) => Uint8Array.fromHex(text)
  const text = (string) => new TextEncoder().encode(string)
  const nameOf = async (run) => { try { await run(); return 'none' } catch (error) { return error.name } }
`

/** Runs code, the body of an async function of `input`, and gives what it returns by way of JSON. */
export type Evaluate = (code: string, input?: unknown) => Promise<unknown>

/** In one guest, one after the other. */
export function inGuest(memoryMb = 128): { readonly evaluate: Evaluate; readonly guest: Guest } {
  const guest = new Guest(memoryMb).load(`({ default: { async fetch(request) {
    const { code, input } = JSON.parse(await request.text())
    const value = await new (async () => {}).constructor('input', ${JSON.stringify(HELPERS)} + code)(input)
    return Response.json({ value })
  } } })`)
  if (guest.loaded?.['ok'] !== true) throw new Error(JSON.stringify(guest.loaded))
  const evaluate: Evaluate = async (code, input) => {
    const { body } = guest.call({ bodyKind: 'text', body: JSON.stringify({ code, input }) })
    return (JSON.parse(body) as { value: unknown }).value
  }
  return { evaluate, guest }
}

export const inNode: Evaluate = async (code, input) => {
  const value = await new AsyncFunction('input', HELPERS + code)(input)
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value))
}
