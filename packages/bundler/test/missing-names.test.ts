import { builtinModules } from 'node:module'
import t from 'tap'
import { bundleFunction } from '../src/index.ts'
import { Guest } from '../../runtime/test/support/guest.ts'

const MODULES = builtinModules.filter((name) => !name.startsWith('_') && !name.startsWith('node:'))

/** What Node.js has on some systems, in some processes, or for its inspector alone. */
const OF_SOME: Readonly<Record<string, readonly string[]>> = {
  console: ['context', 'createTask'],
  process: ['disconnect', 'execve', 'initgroups', 'send', 'setegid', 'seteuid', 'setgid', 'setgroups', 'setuid'],
}

t.test('each function of a module of Node.js is there, imported and required, if only to say that it cannot work', async (t) => {
  const imports = MODULES.map((name, index) => `import * as m${index} from ${JSON.stringify(`node:${name}`)}`)
  const required = MODULES.map((name) => `${JSON.stringify(name)}: require(${JSON.stringify(`node:${name}`)})`)
  const folder = t.testdir({
    'index.mjs': `${imports.join('\n')}
      import required from './required.cjs'
      const imported = { ${MODULES.map((name, index) => `${JSON.stringify(name)}: m${index}`).join(', ')} }
      const isThere = (module, name) => typeof imported[module][name] === 'function' && typeof required[module][name] === 'function'
      export default async (request) => {
        const missing = {}
        for (const [module, functions] of Object.entries(await request.json())) {
          const lacks = functions.filter((name) => !isThere(module, name))
          if (lacks.length > 0) missing[module] = lacks
        }
        return Response.json(missing)
      }`,
    'required.cjs': `module.exports = { ${required.join(', ')} }`,
  })
  const { code } = await bundleFunction(folder, { limitBytes: 2 ** 25 })
  const names = Object.fromEntries(
    MODULES.map((name) => {
      const module = process.getBuiltinModule(`node:${name}`) as Record<string, unknown>
      // What begins with `_` is for Node.js itself.
      const functions = Object.keys(module).filter((key) => typeof module[key] === 'function' && !key.startsWith('_'))
      return [name, functions.filter((key) => OF_SOME[name]?.includes(key) !== true)]
    }),
  )
  const guest = new Guest(256).load(`(${code.trim().replace(/;$/, '')})(carpoolSupport_)`)
  t.match(guest.loaded, { ok: true })
  const { body } = guest.call({ bodyKind: 'text', body: JSON.stringify(names) })
  t.same(JSON.parse(body), {})
})
