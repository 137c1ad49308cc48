import { isBuiltin } from 'node:module'
import { sep } from 'node:path'
import { CarpoolError } from '@carpool/core'
import type { Message } from 'esbuild'
import { labelPath } from './label-path.ts'

const MOST_SHOWN = 10

const INSTEAD: Readonly<Record<string, string>> = {
  'crypto': 'use the global crypto',
  'http': 'use fetch',
  'https': 'use fetch',
  'http2': 'use fetch',
}

/** A `bundle-failed` that lists the bundler's errors as `file:line:column: text`, lines and columns from 1. */
export function toCarpoolError(errors: readonly Message[], folder: string): CarpoolError {
  const shown = errors.slice(0, MOST_SHOWN).map((message) => describe(message, folder))
  const more = errors.length - shown.length
  return new CarpoolError('bundle-failed', [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join('\n'))
}

function describe({ text, location }: Message, folder: string): string {
  const said = (explainBuiltin(text) ?? text).replaceAll(folder + sep, '')
  return location === null ? said : `${labelPath(location.file, folder)}:${location.line}:${location.column + 1}: ${said}`
}

function explainBuiltin(text: string): string | undefined {
  const name = /^Could not resolve "(?:node:)?([^"]+)"$/.exec(text)?.[1]
  if (name === undefined || !isBuiltin(`node:${name}`)) return undefined
  const instead = INSTEAD[name]
  return `node:${name} is not available in a function${instead === undefined ? '' : `; ${instead}`}`
}
