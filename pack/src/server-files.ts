import { bundlePrograms } from '@carpool/server/bundle-programs'
import { build } from 'esbuild'
import { cpSync, globSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { ROOT } from './workspaces.ts'

/** Writes what a server reads from beside its code when it starts. @returns the third-party packages that this needs */
export async function writeServerFiles(folder: string, target: string): Promise<Readonly<Record<string, string>>> {
  await writeHostPrograms(folder, target)
  copyProbe(folder)
  await writeBuiltins(folder, target)
  copyAddon(folder)
  return copyIsolatedVm(folder)
}

/** What host processes run, so that no server has to bundle it (packages/server/src/hosts/host-files.ts). */
async function writeHostPrograms(folder: string, target: string): Promise<void> {
  const { host, runtime } = await bundlePrograms(target)
  mkdirSync(join(folder, 'dist/host'), { recursive: true })
  writeFileSync(join(folder, 'dist/host/process.js'), host)
  writeFileSync(join(folder, 'dist/host/runtime.js'), runtime)
}

/** The program that tries out the sandbox (packages/sandbox/src/run-probe.ts). */
function copyProbe(folder: string): void {
  cpSync(join(ROOT, 'packages/sandbox/src/probe.js'), join(folder, 'dist/probe.js'))
}

/** Modules that become part of functions (packages/bundler/src/builtin-modules.ts). */
async function writeBuiltins(folder: string, target: string): Promise<void> {
  // Each stays a file of its own: what a function does not import is not in its bundle, and `require()` is for the function's
  // bundler.
  const { outputFiles } = await build({
    entryPoints: globSync('packages/bundler/src/builtins/**/*.ts', { cwd: ROOT }).filter((file) => !file.endsWith('.d.ts')),
    outdir: join(folder, 'dist/builtins'),
    absWorkingDir: ROOT,
    write: false,
    format: 'esm',
    platform: 'neutral',
    target,
    logLevel: 'error',
    tsconfigRaw: {},
  })
  for (const { path, text } of outputFiles) {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text.replace(/(\b(?:from|import)\s*\(?\s*["']\.{1,2}\/[^"'\n]+)\.ts(?=["'])/g, '$1.js'))
  }
}

/** Our own addon, for each platform that it is built for. */
function copyAddon(folder: string): void {
  const place = join('native/prebuilt')
  mkdirSync(join(folder, place), { recursive: true })
  for (const file of globSync('*.node', { cwd: join(ROOT, 'host', place) })) {
    cpSync(join(ROOT, 'host', place, file), join(folder, place, file))
  }
}

/** Where Carpool runs. */
const PLATFORMS = ['linux-x64', 'linux-arm64']

/**
 * Copies isolated-vm with the binaries that its authors made for the Node.js that servers run on. As a dependency, its install
 * script would look for one for the Node.js that runs npm: on an older one it finds none, tries to compile one, and the whole
 * installation fails.
 */
function copyIsolatedVm(folder: string): Readonly<Record<string, string>> {
  const main = createRequire(join(ROOT, 'host/package.json')).resolve('isolated-vm')
  const source = realpathSync(dirname(main))
  const { name, version, license } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as Record<string, string>
  const loader = createRequire(main)('node-gyp-build/package.json') as { readonly version: string }
  const dependencies = { 'node-gyp-build': loader.version }
  const place = join(folder, 'isolated-vm')
  mkdirSync(place)
  writeFileSync(
    join(place, 'package.json'),
    `${JSON.stringify({ name, version, license, private: true, main: basename(main), dependencies }, null, 2)}\n`,
  )
  const abi = `abi${process.versions.modules}`
  const binaries = PLATFORMS.flatMap((platform) => {
    const files = globSync(`prebuilds/${platform}/*.${abi}.*`, { cwd: source })
    if (files.length === 0) throw new Error(`isolated-vm has no binary of ${abi} for ${platform}.`)
    return files
  })
  for (const file of [basename(main), 'LICENSE', ...binaries]) cpSync(join(source, file), join(place, file))
  return dependencies
}
