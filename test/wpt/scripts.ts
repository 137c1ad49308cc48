/** What a test consists of: testharness.js, what it names in its head, and itself, to be run as scripts one after the other. */
import { readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import type { TestFile } from './areas.ts'

/** Where tests believe to come from. What they fetch from there is a file. */
export const ORIGIN = 'http://web-platform.test:8000'

export interface Script {
  readonly name: string
  readonly source: string
}

/** Whether a subtest passed, by its name. */
export type Results = Readonly<Record<string, boolean>>

const META = /^\/\/ META: ([a-z]+)=(.*)$/gm

export class Roots {
  readonly #roots: readonly string[]

  constructor(roots: readonly string[]) {
    this.#roots = roots
  }

  /** The content of a file below the roots, that of the preferred one first; undefined if there is none. */
  read(path: string, preferred = this.#roots[0]!): string | undefined {
    const within = normalize(path).replace(/^\/+/, '')
    if (within.startsWith('..')) return undefined
    const root = [preferred, ...this.#roots].find((candidate) =>
      statSync(join(candidate, within), { throwIfNoEntry: false })?.isFile(),
    )
    return root === undefined ? undefined : readFileSync(join(root, within), 'utf8')
  }

  /** The scripts of a test. @throws Error if a script that it names is not there */
  scriptsOf({ path, root }: TestFile): Script[] {
    const own = this.read(path, root)!
    const metas = [...own.matchAll(META)].map(([, key, value]) => [key!, value!.trim()] as const)
    const named = metas
      .filter(([key]) => key === 'script')
      .map(([, value]) => (value.startsWith('/') ? value : join(dirname(path), value)))
    const [variant = ''] = metas.filter(([key]) => key === 'variant').map(([, value]) => value)
    const title = metas.find(([key]) => key === 'title')?.[1] ?? path
    return [
      { name: 'prelude.js', source: preludeOf(path, variant, title) },
      { name: 'resources/testharness.js', source: this.read('resources/testharness.js')! },
      { name: 'report.js', source: REPORT },
      ...named.map((name) => {
        const source = this.read(name, root)
        if (source === undefined) throw new Error(`${path} needs ${name}, which is not there.`)
        return { name, source }
      }),
      { name: path, source: own },
    ]
  }
}

/** What a test finds of a page around it. */
function preludeOf(path: string, variant: string, title: string): string {
  const href = `${ORIGIN}/${path}${variant}`
  return `
    globalThis.self ??= globalThis
    globalThis.GLOBAL = { isWindow: () => false, isWorker: () => false, isShadowRealm: () => false }
    globalThis.META_TITLE = ${JSON.stringify(title)}
    Object.defineProperty(globalThis, 'location', { configurable: true, writable: true, value: {
      href: ${JSON.stringify(href)}, origin: '${ORIGIN}', protocol: 'http:', host: 'web-platform.test:8000', hostname: 'web-platform.test',
      port: '8000', pathname: ${JSON.stringify(`/${path}`)}, search: ${JSON.stringify(variant)}, hash: '', toString() { return this.href } } })
    {
      const ownFetch = globalThis.fetch
      globalThis.fetch = (input, init) => {
        const isRelative = typeof input === 'string' && !/^[a-z][a-z0-9+.-]*:/i.test(input)
        return ownFetch(isRelative ? new URL(input, ${JSON.stringify(href)}).href : input, init)
      }
    }
  `
}

const REPORT = `
  globalThis.wptResults = new Promise((resolve) => add_completion_callback((tests, status) => {
    const results = Object.create(null)
    for (const { name, status } of tests) results[name] = status === 0
    resolve(JSON.stringify({ status: status.status, message: String(status.message), results }))
  }))
`
