import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { repositoryPath } from './repository.ts'

/** How often it is looked whether another process is done, in ms. */
const LOOK_MS = 200
/** Whoever takes longer than this has gone, and its process id is somebody else's by now, in ms. */
const LONGEST_MS = 600_000

/**
 * Installs the packages of the lock file in a folder, once for each state of it. Of several processes that ask at the same time
 * one does it, and the others wait.
 * @param path of the folder, from the root of the repository
 * @returns the folder with `node_modules` in it
 */
export function installPackages(path = 'test/packages'): string {
  const locked = repositoryPath(path)
  const lock = readFileSync(join(locked, 'package-lock.json'))
  const state = createHash('sha256').update(lock).digest('hex').slice(0, 16)
  const folder = join(repositoryPath('node_modules/.carpool-packages'), state)
  const claim = `${folder}.claim`
  mkdirSync(dirname(folder), { recursive: true })
  while (!existsSync(folder)) {
    if (!claimed(claim)) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_MS)
      continue
    }
    try {
      // Another may just have finished.
      if (!existsSync(folder)) install(locked, folder)
    } finally {
      rmSync(claim, { force: true })
    }
  }
  return folder
}

/** Claims the work for this process, unless another has, and is at it. */
function claimed(claim: string): boolean {
  try {
    writeFileSync(claim, String(process.pid), { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  if (!isAtWork(claim)) rmSync(claim, { force: true })
  return false
}

function isAtWork(claim: string): boolean {
  const sinceMs = statSync(claim, { throwIfNoEntry: false })?.mtimeMs
  if (sinceMs === undefined || Date.now() - sinceMs > LONGEST_MS) return false
  try {
    process.kill(Number(readFileSync(claim, 'utf8')), 0)
    return true
  } catch {
    return false
  }
}

function install(locked: string, folder: string): void {
  const unfinished = `${folder}.${process.pid}`
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(unfinished, { recursive: true })
  for (const file of ['package.json', 'package-lock.json']) cpSync(join(locked, file), join(unfinished, file))
  // Functions run what is plain JavaScript: nothing is compiled.
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', unfinished], {
    cwd: unfinished,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  try {
    renameSync(unfinished, folder)
  } catch (error) {
    // Another process has taken this one for gone, and was faster.
    if (!existsSync(folder)) throw error
    rmSync(unfinished, { recursive: true })
  }
}
