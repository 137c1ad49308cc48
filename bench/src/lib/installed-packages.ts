import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { repositoryPath } from './repository.ts'

/**
 * Installs the packages of the lock file in a folder, once for each state of it.
 * @param path of the folder, from the root of the repository
 * @returns the folder with `node_modules` in it
 */
export function installPackages(path = 'test/packages'): string {
  const locked = repositoryPath(path)
  const lock = readFileSync(join(locked, 'package-lock.json'))
  const state = createHash('sha256').update(lock).digest('hex').slice(0, 16)
  const folder = join(repositoryPath('node_modules/.carpool-packages'), state)
  if (existsSync(folder)) return folder
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
    // Another process was faster.
    if (!existsSync(folder)) throw error
    rmSync(unfinished, { recursive: true })
  }
  return folder
}
