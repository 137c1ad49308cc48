import { checkFunctionName, type HeaderList, type InvokeResponse } from '@carpool/core'
import type { ApiClient } from '../api-client.ts'
import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import { headers } from '../option-parsers.ts'
import { readRequestData, textOf, withContentType } from '../request-data.ts'
import { visibleText } from '../visible-text.ts'
import type { Verb } from '../verb.ts'

interface InvokeOptions extends ConnectionOptions {
  readonly data?: string
  readonly method?: string
  readonly path: string
  readonly header?: HeaderList
}

export const invoke: Verb<InvokeOptions> = {
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
 * What is called: the URL of the function where it is known, although the call itself goes through the control plane. A query may have secrets in
 * it, which must not get into logs.
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
