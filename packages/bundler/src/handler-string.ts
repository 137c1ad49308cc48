import { CarpoolError } from '@carpool/core'

export interface HandlerString {
  /** File without its extension, relative to the folder; absent if only the export was given. */
  readonly stem?: string
  readonly handlerExport: string
}

const EXPORT_PATTERN = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u

/**
 * Reads `src/index.handler` as AWS Lambda does: a file without its extension and, after the last dot, one of its exports.
 * @throws CarpoolError `invalid-config`
 */
export function parseHandler(text: string): HandlerString {
  const dot = text.lastIndexOf('.')
  const stem = text.slice(0, Math.max(dot, 0))
  const handlerExport = text.slice(dot + 1)
  const valid = EXPORT_PATTERN.test(handlerExport) && (dot === -1 || (stem !== '' && !/[./\\]$/.test(stem)))
  if (!valid) {
    throw new CarpoolError(
      'invalid-config',
      `The handler ${JSON.stringify(text)} is not valid: write a file without its extension and an export, such as "src/index.handler", or only the export.`,
    )
  }
  return stem === '' ? { handlerExport } : { stem, handlerExport }
}
