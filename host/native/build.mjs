/**
 * Builds the addon for this version of Node.js and this platform, or the one that is named, with the C++ compiler of the
 * system, or that of `CXX`: `npm run build:addon`, or `CXX=aarch64-linux-gnu-g++ npm run build:addon -- linux-arm64`. What was
 * built is committed, so that nobody needs a compiler to run Carpool.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const folder = import.meta.dirname
const sources = readdirSync(folder)
  .filter((file) => /\.(?:cc|h)$/.test(file))
  .toSorted()
const include = [join(dirname(dirname(process.execPath)), 'include/node')].find((path) => existsSync(join(path, 'v8.h')))
if (include === undefined) throw new Error(`There are no headers of Node.js beside ${process.execPath}.`)
const platform = process.argv[2] ?? `${process.platform}-${process.arch}`
const target = join(folder, 'prebuilt', `${platform}-${process.versions.modules}.node`)
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
  '-DOPENSSL_SUPPRESS_DEPRECATED',
  // Functions that check their arguments are there in glibc only.
  '-U_FORTIFY_SOURCE',
  '-nostdlib',
  // Functions that nothing calls stay out.
  '-ffunction-sections',
  '-Wl,--gc-sections',
  // Else atomic instructions are calls of functions in the compiler's own library.
  ...(platform.endsWith('-arm64') ? ['-mno-outline-atomics'] : []),
  '-s',
]
const programs = sources.filter((source) => source.endsWith('.cc')).map((source) => join(folder, source))
execFileSync(process.env.CXX ?? 'g++', [...flags, '-I', include, ...programs, '-o', target], { stdio: 'inherit' })
// A test compares it, so that the sources and what is committed cannot drift apart.
const hash = createHash('sha256')
for (const source of sources) hash.update(readFileSync(join(folder, source)))
writeFileSync(`${target}.source`, `${hash.digest('hex')}\n`)
console.log(target)
