/**
 * Builds the addon for this platform and version of Node.js, with the C++ compiler of the system:
 * `npm run build:clock`. What was built is committed, so that nobody needs a compiler to run Carpool.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const folder = import.meta.dirname
const source = join(folder, 'entry-clock.cc')
const include = [join(dirname(dirname(process.execPath)), 'include/node')].find((path) => existsSync(join(path, 'v8.h')))
if (include === undefined) throw new Error(`There are no headers of Node.js beside ${process.execPath}.`)
const name = `${process.platform}-${process.arch}-${process.versions.modules}`
const target = join(folder, 'prebuilt', `${name}.node`)
mkdirSync(dirname(target), { recursive: true })
const flags = [
  '-shared',
  '-fPIC',
  '-O2',
  '-std=c++20',
  '-fvisibility=hidden',
  '-fno-exceptions',
  '-fno-rtti',
  '-fno-threadsafe-statics',
  '-nodefaultlibs',
  '-s',
]
execFileSync(process.env.CXX ?? 'g++', [...flags, '-I', include, source, '-lc', '-o', target], { stdio: 'inherit' })
// A test compares it, so that the source and what is committed cannot drift apart.
writeFileSync(`${target}.source`, `${createHash('sha256').update(readFileSync(source)).digest('hex')}\n`)
console.log(target)
