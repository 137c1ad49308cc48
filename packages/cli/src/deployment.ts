import { type FunctionInfo, LIMIT_RANGES } from '@carpool/core'
import type { Command } from 'commander'
import { variables, wholeNumber } from './options.ts'

/** Adds the options of a deployment: those of `DeploymentOptions` in packages/bundler. */
export function addDeploymentOptions(command: Command): void {
  const { memoryMb, cpuMs, wallMs, streamMs, idleMs } = LIMIT_RANGES
  command
    .option('--name <name>', "name of the function (default: its configuration's, else that of the folder or file)")
    .option('--handler <file.export>', 'where the handler is, as AWS Lambda writes it')
    .option('--env <KEY=value>', 'variable for the function; repeatable', variables)
    .option('--memory-mb <number>', `memory limit in MiB (default: ${memoryMb.default})`, wholeNumber(memoryMb.min, memoryMb.max))
    .option(
      '--cpu-ms <number>',
      `CPU limit of one invocation in ms (default: ${cpuMs.default})`,
      wholeNumber(cpuMs.min, cpuMs.max),
    )
    .option(
      '--timeout-ms <number>',
      `wall limit of one invocation in ms (default: ${wallMs.default})`,
      wholeNumber(wallMs.min, wallMs.max),
    )
    .option(
      '--stream-ms <number>',
      `limit of a streamed answer or WebSocket after its head in ms, 0: none (default: ${streamMs.default})`,
      wholeNumber(streamMs.min, streamMs.max),
    )
    .option(
      '--idle-ms <number>',
      `how long nothing may come or go of what streams in ms, 0: for ever (default: ${idleMs.default})`,
      wholeNumber(idleMs.min, idleMs.max),
    )
}

export function deployedText({ name, revision, codeBytes, url }: FunctionInfo): string {
  return `Deployed ${name}, revision ${revision}, ${Math.ceil(codeBytes / 1024)} KiB: ${url}`
}
