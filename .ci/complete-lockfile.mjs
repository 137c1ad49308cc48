// Run after a change of dependencies: node .ci/complete-lockfile.mjs
//
// npm leaves an optional package that its registry does not have out of package-lock.json, and `npm ci` then refuses the file
// because it is not complete. Registries that mirror only some platforms lack those of the others. This adds what is missing,
// with the version that is asked for and the platform that the name tells; npm installs none of them on another platform.
//
// Packages run on the Node.js that is installed with them, whichever one runs npm: without their `engines`, npm has nothing to
// warn of.
import { readFileSync, writeFileSync } from 'node:fs'

const LOCKFILE = new URL('../package-lock.json', import.meta.url)
const SYSTEMS = {
  android: 'android',
  darwin: 'darwin',
  freebsd: 'freebsd',
  linux: 'linux',
  openharmony: 'openharmony',
  win32: 'win32',
  windows: 'win32',
}
const PROCESSORS = {
  arm: 'arm',
  arm64: 'arm64',
  ia32: 'ia32',
  ppc64: 'ppc64',
  riscv64: 'riscv64',
  s390x: 's390x',
  x64: 'x64',
  64: 'x64',
}

const lock = JSON.parse(readFileSync(LOCKFILE, 'utf8'))
const present = new Set(Object.keys(lock.packages).map((path) => path.split('node_modules/').at(-1)))
for (const { optionalDependencies = {}, dev } of Object.values(lock.packages)) {
  for (const [name, range] of Object.entries(optionalDependencies)) {
    if (present.has(name)) continue
    present.add(name)
    const words = name.split('/').at(-1).split('-')
    const system = words.map((word) => SYSTEMS[word]).find(Boolean)
    const processor = words.map((word) => PROCESSORS[word]).find(Boolean)
    const libc = name.includes('musl') ? 'musl' : name.includes('gnu') ? 'glibc' : undefined
    lock.packages[`node_modules/${name}`] = {
      version: range.replace(/^[\^~]/, ''),
      ...(processor && { cpu: [processor] }),
      ...(dev && { dev }),
      ...(libc && { libc: [libc] }),
      optional: true,
      ...(system && { os: [system] }),
    }
    console.log(`added ${name}`)
  }
}
for (const entry of Object.values(lock.packages)) delete entry.engines
lock.packages = Object.fromEntries(Object.entries(lock.packages).toSorted(([a], [b]) => (a < b ? -1 : 1)))
writeFileSync(LOCKFILE, `${JSON.stringify(lock, null, 2)}\n`)
