/**
 * The web APIs import nothing of the bridge but by one file, so that they can be replaced without a look at what bill and limits
 * depend on.
 */
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import t from 'tap'

const GUEST = join(import.meta.dirname, '../src/guest')
const WEB_API = join(GUEST, 'web-api')
const BORDER = 'host.ts'
const IMPORT = /^(?:import|export)\b[^;'"]*?\bfrom '([^']+)'/gm

interface Import {
  readonly file: string
  readonly target: string
}

/** What files import from beyond their folder, as a path from `src/guest`, or as the name of a package. */
function importsBeyond(folder: string): Import[] {
  return globSync('**/*.ts', { cwd: folder }).flatMap((file) => {
    const path = join(folder, file)
    const targets = [...readFileSync(path, 'utf8').matchAll(IMPORT)].map((match) => match[1]!)
    return targets
      .map((target) => (target.startsWith('.') ? join(dirname(path), target) : target))
      .filter((target) => !target.startsWith(`${folder}/`))
      .map((target) => ({ file, target: target.startsWith('/') ? relative(GUEST, target) : target }))
  })
}

t.test('The web APIs know the bridge by one file', (t) => {
  const beyond = importsBeyond(WEB_API)
  const isFree = ({ target }: Import): boolean => target.startsWith('language/') || target === '@carpool/core'
  t.same(
    beyond.filter((one) => one.file !== BORDER && !isFree(one)),
    [],
  )
  t.ok(beyond.some(({ file, target }) => file === BORDER && target === 'port.ts'))
  t.ok(beyond.some(isFree))
  t.end()
})

t.test('What stands for the language knows neither', (t) => {
  t.same(importsBeyond(join(GUEST, 'language')), [])
  t.end()
})
