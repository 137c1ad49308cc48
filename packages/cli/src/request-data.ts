import { CarpoolError, type HeaderList } from '@carpool/core'
import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import type { Io } from './io.ts'

/**
 * The body that `-d` asks for: the text itself, the content of a file (`@file`), or stdin (`-`).
 * @throws CarpoolError `usage` if the file cannot be read
 */
export async function readRequestData(data: string, io: Io): Promise<Buffer> {
  if (data === '-') return await buffer(io.stdin)
  if (!data.startsWith('@')) return Buffer.from(data)
  const file = data.slice(1)
  try {
    return await readFile(file)
  } catch (cause) {
    throw new CarpoolError(
      'usage',
      `The data file ${JSON.stringify(file)} cannot be read (${(cause as NodeJS.ErrnoException).code}).`,
      { cause },
    )
  }
}

/** Adds the content type of a body, if the caller gave none: JSON if it is JSON, else text if it is UTF-8, else bytes. */
export function withContentType(headers: HeaderList, body: Buffer): HeaderList {
  if (body.byteLength === 0 || headers.some(([name]) => name === 'content-type')) return headers
  return [...headers, ['content-type', contentTypeOf(body)]]
}

function contentTypeOf(body: Buffer): string {
  const text = textOf(body)
  if (text === undefined) return 'application/octet-stream'
  try {
    JSON.parse(text)
    return 'application/json'
  } catch {
    return 'text/plain;charset=utf-8'
  }
}

/** Bytes as text; undefined if they are not UTF-8. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
