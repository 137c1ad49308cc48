import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { installPackages } from '../lib/installed-packages.ts'

export interface App {
  /** Most that it may take over a warm call when its isolate was evicted, in ms. */
  readonly aimMs: number
  /** Whether it has packages. */
  readonly hasPackages: boolean
  /** The answer is how many calls the instance has had, so that it tells whether the isolate was new. */
  readonly source: string
}

/** The name of a package that a function imports, and this file does not. */
const quoted = (name: string): string => JSON.stringify(name)

export const APP_NAMES = ['hello', 'hono', 'express'] as const

/** What is deployed, by what it is made with. */
export const APPS: Readonly<Record<(typeof APP_NAMES)[number], App>> = {
  hello: {
    aimMs: 3,
    hasPackages: false,
    source: `let calls = 0

export default {
  fetch() {
    calls++
    return new Response(String(calls))
  },
}
`,
  },
  hono: {
    aimMs: 15,
    hasPackages: true,
    source: `
      import { Hono } from ${quoted('hono')}
      import { cors } from ${quoted('hono/cors')}
      import { z } from ${quoted('zod')}

      const Query = z.object({ page: z.coerce.number().int().min(1).default(1), order: z.enum(['up', 'down']).optional() })
      const app = new Hono()
      let calls = 0
      app.use('*', cors())
      app.get('/*', (c) => {
        const query = Query.parse(c.req.query())
        calls++
        return query.page === 1 ? c.text(String(calls)) : c.notFound()
      })
      export default app
`,
  },
  express: {
    aimMs: 60,
    hasPackages: true,
    source: `
      import cookieParser from ${quoted('cookie-parser')}
      import express from ${quoted('express')}

      const app = express()
      let calls = 0
      app.use(cookieParser('secret'))
      app.use(express.json({ limit: '10kb' }))
      app.use(express.urlencoded({ extended: true }))
      for (const path of ['/users/:id', '/orders/:id', '/files/*path']) app.get(path, (req, res) => res.json(req.params))
      app.get('/', (req, res) => {
        calls++
        res.cookie('seen', 'once').type('txt').send(String(calls))
      })
      export default app
`,
  },
}

/** Where functions of an app are written to, so that they find its packages. */
export function folderOf({ hasPackages }: App, folder: string): string {
  return hasPackages ? join(installPackages(), 'cold') : folder
}

/** Writes a function into a folder of its own. Each has code of its own, so that none profits from the code cache of another. */
export async function writeCountingFunction(parent: string, name: string, { source }: App): Promise<string> {
  const folder = join(parent, name)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'index.js'), `// ${name}\n${source}globalThis.ownName = '${name}'\n`)
  return folder
}
