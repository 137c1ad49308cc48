import { spawn } from 'node:child_process'
import { endWith } from '../lib/end-with.ts'
import { progress } from '../lib/report.ts'
import { repositoryPath } from '../lib/repository.ts'
import { BENCHES, type BenchName } from './benches.ts'
import type { BenchDocument } from './claim.ts'

export interface Order {
  readonly name: BenchName
  readonly isQuick: boolean
  /** The parts to measure; undefined for all. */
  readonly parts: readonly string[] | undefined
}

/**
 * Runs a bench as a process of its own and reads what it prints. That a demand of it is not met is in the document, and no error.
 * @throws Error if it is interrupted, or ends without a document
 */
export async function runBench({ name, isQuick, parts }: Order): Promise<BenchDocument> {
  const { script, args = [], quickArgs, hasParts } = BENCHES[name]
  const only = hasParts && parts !== undefined ? ['--only', parts.join(',')] : []
  const child = spawn(process.execPath, [repositoryPath(script), '--json', ...args, ...(isQuick ? quickArgs : []), ...only], {
    cwd: repositoryPath(''),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const stopWatching = endWith(child)
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const end = await new Promise<string>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve(signal ?? `exit code ${code}`))
  })
  stopWatching()
  progress(`${name}: ${end}`)
  try {
    return JSON.parse(output) as BenchDocument
  } catch {
    throw new Error(`${name} ended with ${end} and without a result.`)
  }
}
