import type { SecretInfo } from '@carpool/core'
import { createInterface } from 'node:readline'
import { PassThrough, type Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { Io, CliCommand } from '../command.ts'
import { addConnectionOptions, connect, type ConnectionOptions } from '../connect.ts'
import { type Column, renderTable } from '../format.ts'
import { addOwnerOption, type OwnerOption } from '../options.ts'
import { usageError } from '../output.ts'

interface SecretSetOptions extends ConnectionOptions, OwnerOption {
  readonly value?: string
}

export const secretSet: CliCommand<SecretSetOptions> = {
  define(command) {
    command.option(
      '--value <text>',
      'the value itself; other users of this machine may see it, and it stays in the history of the shell',
    )
    addOwnerOption(command)
    addConnectionOptions(command)
    command.addHelpText(
      'after',
      '\nThe value comes from stdin, or is asked for on a terminal. The function reads it in env and process.env.' +
        '\nIf the function is deployed, a new revision of the same code takes its place; calls under way keep the old value.',
    )
  },

  async run({ args: [functionName = '', key = ''], options: { value, owner, ...options }, io, output }) {
    const client = connect(options, { io, output })
    const info = await client.setSecret(functionName, key, value ?? (await readSecretValue(key, io)), owner)
    const where = info.revision === undefined ? 'for when it is deployed' : `revision ${info.revision} has it`
    const { adminUrl: server } = client
    output.answer({ ...info, server }, `Set ${key} of ${functionName} at ${server}: ${where}.`)
  },
}

const COLUMNS: readonly Column<SecretInfo>[] = [
  { title: 'KEY', text: ({ key }) => key },
  { title: 'CREATED', text: ({ createdAt }) => createdAt },
  { title: 'SET', text: ({ updatedAt }) => updatedAt },
]

export const secretList: CliCommand<ConnectionOptions & OwnerOption> = {
  define(command) {
    addOwnerOption(command)
    addConnectionOptions(command)
    command.addHelpText('after', '\nNobody is given a value.')
  },

  async run({ args: [functionName = ''], options: { owner, ...options }, io, output }) {
    const secrets = await connect(options, { io, output }).secrets(functionName, owner)
    if (secrets.length > 0 || output.json) output.answer(secrets, renderTable(COLUMNS, secrets, io.stdout))
    else output.note(`${functionName} has no secrets. Set one with: carpool secret set ${functionName} <key>`)
  },
}

export const secretDelete: CliCommand<ConnectionOptions & OwnerOption> = {
  define(command) {
    addOwnerOption(command)
    addConnectionOptions(command)
  },

  async run({ args: [functionName = '', key = ''], options: { owner, ...options }, io, output }) {
    const client = connect(options, { io, output })
    await client.deleteSecret(functionName, key, owner)
    const { adminUrl: server } = client
    output.answer({ deleted: key, function: functionName, server }, `Deleted ${key} of ${functionName} at ${server}.`)
  },
}

/**
 * Reads the value of a secret: from a prompt that does not show it, if stdin is a terminal, else all of stdin. One end of a
 * line at the end is left out, which `echo` and editors add.
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
      // The terminal gives it as a key. Who ends a script by it means the whole script, and is not to hear of a missing value.
      reader.once('SIGINT', () => {
        reader.removeAllListeners('close').close()
        process.kill(process.pid, 'SIGINT')
      })
    })
  } finally {
    reader.close()
    stderr.write('\n')
  }
}
