import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleOf } from '../lib/bundle.ts'
import { repositoryPath } from '../lib/repository.ts'

/** The example that calculates: its query says how much. */
export const CALC_FOLDER = repositoryPath('examples/calc')
export const HELLO_FILE = fileURLToPath(new URL('../http/functions/hello.js', import.meta.url))
export const SLEEPER_FILE = fileURLToPath(new URL('functions/sleeper.js', import.meta.url))
export const CALLER_FILE = fileURLToPath(new URL('functions/caller.js', import.meta.url))

export function calcPath(name: string, level: number): string {
  return `/${name}/?level=${level}`
}

/** The example that calculates as a bundle. @param label makes it code of its own */
export function calcBundle(label: string): string {
  return bundleOf(readFileSync(join(CALC_FOLDER, 'index.js'), 'utf8'), label)
}

/** The same, but it logs the number in `call` and the time of day when it begins. */
export function loggingCalcBundle(): string {
  return `(() => {
    const calc = ${calcBundle('inner')}().default
    return { default: { fetch(request) {
      console.log(new URL(request.url).searchParams.get('call') + ' ' + Date.now())
      return calc.fetch(request)
    } } }
  })`
}
