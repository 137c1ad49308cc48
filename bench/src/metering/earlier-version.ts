import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { REPOSITORY } from '../lib/repository.ts'

const run = promisify(execFile)

/**
 * Puts a commit of this repository, with the packages of its lockfile, into a new folder.
 * @returns the folder
 * @throws Error if there is no such commit, or the packages cannot be had
 */
export async function installEarlierVersion(commit: string, parent: string): Promise<string> {
  const folder = join(parent, 'checkout')
  const archive = join(parent, 'checkout.tar')
  await run('git', ['archive', `--output=${archive}`, `--prefix=checkout/`, commit], { cwd: REPOSITORY })
  await run('tar', ['-xf', archive, '-C', parent])
  await run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder })
  return folder
}
