import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { bundleOf } from '../lib/bundle.ts'

/** The function that works for a while and whose answer can be checked, as a bundle. */
export function neighbourBundle(): string {
  const file = fileURLToPath(new URL('functions/neighbour.js', import.meta.url))
  return bundleOf(readFileSync(file, 'utf8'), 'neighbour')
}

/** A bundle with a function that does this with each request. @param body of an async function that has the `request` */
export function handlerBundle(body: string): string {
  return `(() => ({ default: { async fetch(request) { ${body} } } }))`
}
