import { CarpoolError } from '@carpool/core'
import { checkJsonShape } from '../json-shape.ts'

/**
 * What a body of JSON says. It is looked over before: a body of some MB may hold millions of empty lists, and to make them would
 * take all of the server's memory. What a deploy sends is large because its texts are.
 * @throws CarpoolError `bad-request`
 */
export function readJson(bytes: Uint8Array): unknown {
  if (bytes.length === 0) throw new CarpoolError('bad-request', 'The body is empty.')
  checkJsonShape(bytes)
  const text = decode(bytes)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new CarpoolError('bad-request', 'The body is not valid JSON.', { cause })
  }
  if (hasKeyOfPrototypes(value)) throw new CarpoolError('bad-request', 'The body is not valid JSON.')
  return value
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new CarpoolError('bad-request', 'The body is not valid UTF-8.', { cause })
  }
}

/** Whoever copies such keys one by one would change the prototype of an object, or of all. */
function hasKeyOfPrototypes(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(
    ([key, inner]) => key === '__proto__' || (key === 'constructor' && hasPrototype(inner)) || hasKeyOfPrototypes(inner),
  )
}

function hasPrototype(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, 'prototype')
}
