import { CarpoolError, checkFunctionName, type HeaderList, type InvokeResponse } from '@carpool/core'
import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import type { ApiClient } from '../api-client.ts'
import type { Io, CliCommand } from '../command.ts'
import { addConnectionOptions, connect, type ConnectionOptions } from '../connect.ts'
import { visibleText } from '../format.ts'
import { headers } from '../options.ts'

interface InvokeOptions extends ConnectionOptions {
  readonly data?: string
  readonly method?: string
  readonly path: string
  readonly header?: HeaderList
}

export const invoke: CliCommand<InvokeOptions> = {
  define(command) {
    command
      .option('-d, --data <data>', 'body of the request: the text itself, @file, or - for stdin')
      .option('--method <method>', 'HTTP method (default: POST with data, else GET)')
      .option('--path <path>', "path and query after the function's name", '/')
      .option('--header <header>', '"name: value"; repeatable', headers)
    addConnectionOptions(command)
    command.addHelpText(
      'after',
      '\nThe body of the answer goes to stdout as it is. Data without a content-type header is sent as JSON if it is JSON.' +
        '\nThe exit code is 1 if the function failed or answered with a status of 500 or more.',
    )
  },

  async run({ args: [name = ''], options, io, output }) {
    const client = connect(options, { io, output })
    const body = options.data === undefined ? Buffer.alloc(0) : await readRequestData(options.data, io)
    const path = options.path.startsWith('/') ? options.path : `/${options.path}`
    if (!output.json) output.note(`Calling ${addressOf(checkFunctionName(name), path, client)}`)
    const response = await client.invoke(name, {
      method: options.method?.toUpperCase() ?? (options.data === undefined ? 'GET' : 'POST'),
      path,
      headers: withContentType(options.header ?? [], body),
      bodyBase64: body.toString('base64'),
    })
    if (output.json) output.answer({ ...documentOf(response), server: client.adminUrl }, '')
    else output.raw(Buffer.from(response.bodyBase64, 'base64'))
    const failure = failureOf(response)
    if (failure === undefined) return 0
    output.warn(failure)
    return 1
  },
}

/**
 * What is called: the URL of the function where it is known, although the call itself goes through the control plane. A query
 * may have secrets in it, which must not get into logs.
 */
function addressOf(name: string, path: string, { dataUrl, adminUrl }: ApiClient): string {
  return dataUrl === undefined ? `${name} at ${adminUrl}` : `${dataUrl}/${name}${visibleText(path.replace(/\?.*/s, ''))}`
}

function failureOf({ outcome, status, problem }: InvokeResponse): string | undefined {
  if (outcome !== 'ok') return problem?.detail ?? `The invocation ended with ${outcome}.`
  return status >= 500 ? `The function answered with status ${status}.` : undefined
}

/** The answer with its body as text, unless it is none. */
function documentOf({ bodyBase64, ...response }: InvokeResponse): object {
  const body = textOf(Buffer.from(bodyBase64, 'base64'))
  return { ...response, ...(body === undefined ? { bodyBase64 } : { body }) }
}

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
