import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { FunctionInfo, LogLine, ServerInfo, StatusInfo } from '@carpool/core'
import type { Test } from 'tap'
import { runCarpool, startCarpool, untilEnd, type Finished } from './command.ts'

/** The files of a function, by path in its folder. */
export type Files = Readonly<Record<string, string>>

/** A real server, started through the command, with a data folder of its own. */
export interface TestServer {
  readonly url: string
  readonly adminUrl: string
  readonly dataDir: string
  /** Where the server announces itself to the command. */
  readonly stateDir: string
  /** Runs a verb against this server, in this process. */
  carpool(...args: string[]): Promise<Finished>
  /** Runs a verb with `--json`, and reads what it prints. @throws Error unless the exit code is 0 */
  json<T>(...args: string[]): Promise<T>
  /** Writes a function's files to a new folder and deploys it. @throws Error unless the exit code is 0 */
  deploy(name: string, files: Files | string, ...args: string[]): Promise<FunctionInfo>
  /** Writes a function's files to a new folder. */
  write(files: Files | string): string
  get(path: string, init?: RequestInit): Promise<Response>
  info(): Promise<ServerInfo>
  status(): Promise<StatusInfo>
  /**
   * Resolves when the records of everything that was answered before are in the database: a server that is asked for usage
   * brings them in.
   */
  recorded(): Promise<void>
  /** Waits until the log of a function has a line that matches. */
  untilLogged(name: string, pattern: RegExp): Promise<LogLine>
  /** Sends a signal and waits for the end of the process. */
  stop(signal?: NodeJS.Signals): Promise<Finished>
}

/** @param stateDir where servers announce themselves that are to be found together; default: a folder of its own */
export async function startServer(
  t: Test,
  args: readonly string[] = [],
  dataDir = temporaryFolder(t),
  stateDir = temporaryFolder(t),
): Promise<TestServer> {
  // A process in reserve takes half a second of a core for each server; tests of it ask for one.
  // On a slow machine a burst may fill the CPU for longer than the usual second; only what is about overload wants refusals.
  const env = {
    CARPOOL_STATE_DIR: stateDir,
    CARPOOL_LOG_LEVEL: 'warn',
    CARPOOL_STANDBY_HOSTS: '0',
    CARPOOL_QUEUE_INTERVAL_MS: '60000',
    CARPOOL_MAX_QUEUE_MS: '60000',
  }
  const child = startCarpool(['serve', '--port', '0', '--admin-port', '0', '--data', dataDir, '--json', ...args], env)
  const ended = untilEnd(child)
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  if (child.stdout === null) throw new Error('The server has no output.')
  const first = JSON.parse(await firstLine(child.stdout)) as { ready: true; url: string; adminUrl: string } | { error: object }
  if ('error' in first) throw new Error(`The server ended with code ${(await ended).code}: ${(await ended).stderr}`)
  const { url, adminUrl } = first

  const carpool = (...verb: string[]): Promise<Finished> => runCarpool([...verb, '--url', adminUrl], env)
  const json = async <T>(...verb: string[]): Promise<T> => {
    const { code, stdout, stderr } = await carpool(...verb, '--json')
    if (code !== 0) throw new Error(`carpool ${verb.join(' ')} ended with code ${code}: ${stderr}${stdout}`)
    return JSON.parse(stdout) as T
  }
  const write = (files: Files | string): string => {
    const folder = temporaryFolder(t)
    for (const [path, content] of Object.entries(typeof files === 'string' ? { 'index.js': files } : files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), content)
    }
    return folder
  }
  const authorization = () => ({ authorization: `Bearer ${readFileSync(join(dataDir, 'admin-token'), 'utf8').trim()}` })
  const ask = async <T>(path: string): Promise<T> => {
    const response = await fetch(adminUrl + path, { headers: authorization() })
    return (await response.json()) as T
  }
  return {
    url,
    adminUrl,
    dataDir,
    stateDir,
    carpool,
    json,
    write,
    deploy: (name, files, ...more) => json<FunctionInfo>('deploy', write(files), '--name', name, ...more),
    get: (path, init) => fetch(url + path, init),
    info: () => ask<ServerInfo>('/v1/server'),
    status: () => ask<StatusInfo>('/v1/status'),
    recorded: async () => {
      await ask('/v1/usage?by=function')
    },
    untilLogged: async (name, pattern) => {
      const url = `${adminUrl}/v1/logs?function=${name}&follow=true&limit=1000`
      const { body } = await fetch(url, { headers: authorization() })
      let text = ''
      for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
        const lines = (text + chunk).split('\n')
        text = lines.pop() ?? ''
        const line = lines.find((one) => pattern.test(one))
        if (line !== undefined) return JSON.parse(line) as LogLine
      }
      throw new Error(`The log of ${name} ended without ${String(pattern)}.`)
    },
    stop: (signal = 'SIGTERM') => {
      child.kill(signal)
      return ended
    },
  }
}

export function temporaryFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'carpool-test-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Waits for something that another process brings about, asking again and again; fails when the test's own time is over. */
export async function until<T>(ask: () => Promise<T | undefined | false>): Promise<T> {
  for (;;) {
    const answer = await ask()
    if (answer !== undefined && answer !== false) return answer
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

async function firstLine(stream: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve) => {
    createInterface({ input: stream }).once('line', resolve)
  })
}
