import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { repositoryPath } from './repository.ts'
import { endWith } from './end-with.ts'
import { progress } from './report.ts'

/** What came of a run of tests. */
export interface TapRun {
  readonly passed: number
  /** The checks that failed: the name of the test, and that of the check. */
  readonly failed: readonly string[]
}

/**
 * Runs tests with tap, one file after the other, and tells on stderr what fails. @throws Error if tap does not come to its end
 */
export async function runTap(files: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<TapRun> {
  const args = ['run', '--silent', 'test:unit', '--', '--jobs=1', '--timeout=1800', '--reporter=tap', ...files]
  const child = spawn('npm', args, {
    cwd: repositoryPath(''),
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const stopWatching = endWith(child)
  const ended = new Promise<string>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve(signal ?? `exit code ${code}`))
  })
  const failed: string[] = []
  let test = ''
  let failedBefore = 0
  let total: { readonly pass?: number } | undefined
  for await (const line of createInterface({ input: child.stdout })) {
    test = /^\s+# Subtest: (.*)$/.exec(line)?.[1] ?? test
    // A test that has failed checks in it has its time behind its name, and so has a file. A file that names none of them did
    // not come to its end.
    const isFile = /^(?:not )?ok /.test(line)
    const [, name] = /^\s*not ok \d+ - (.*)$/.exec(line) ?? []
    if (name !== undefined && (isFile ? failed.length === failedBefore : !line.includes(' # time='))) {
      failed.push(isFile ? name : `${test}: ${name}`)
      progress(`  not ok: ${failed.at(-1)}`)
    }
    if (isFile) failedBefore = failed.length
    const counts = /^# \{ (.*) \}$/.exec(line)?.[1]
    if (counts !== undefined) total = { pass: Number(/pass: (\d+)/.exec(counts)?.[1] ?? 0) }
  }
  const end = await ended
  stopWatching()
  if (total?.pass === undefined) throw new Error(`tap did not come to its end: ${end}.`)
  return { passed: total.pass, failed }
}
