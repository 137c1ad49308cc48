import { text } from 'node:stream/consumers'
import { createInterface } from 'node:readline'
import { PassThrough, type Readable } from 'node:stream'
import type { Io } from './io.ts'
import { usageError } from './usage-error.ts'

/**
 * Reads the value of a secret: from a prompt that does not show it, if stdin is a terminal, else all of stdin. One end of a line at the end
 * is left out, which `echo` and editors add.
 * @throws CarpoolError `usage` if there is none
 */
export async function readSecretValue(key: string, { stdin, stderr }: Io): Promise<string> {
  const value = isTerminal(stdin) ? await promptFor(key, stdin, stderr) : (await text(stdin)).replace(/\r?\n$/, '')
  if (value === '') throw usageError(`a value for ${key} is needed: type it, or send it to stdin`)
  return value
}

function isTerminal(stream: Readable): boolean {
  return 'isTTY' in stream && stream.isTTY === true
}

async function promptFor(key: string, stdin: Readable, stderr: Io['stderr']): Promise<string> {
  stderr.write(`Value of ${key} (not shown): `)
  // What readline would echo goes nowhere.
  const reader = createInterface({ input: stdin, output: new PassThrough().resume(), terminal: true })
  try {
    return await new Promise<string>((resolve) => {
      reader.once('line', resolve)
      reader.once('close', () => resolve(''))
    })
  } finally {
    reader.close()
    stderr.write('\n')
  }
}
