import { once } from 'node:events'
import { PassThrough, Readable } from 'node:stream'
import { run } from '../../src/index.ts'

interface Surroundings {
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string
  readonly cwd?: string
}

/** Runs the command in this process. No server of this machine is found unless `env` says where to look. */
export async function runCommand(argv: readonly string[], { env = {}, stdin = '', cwd = '/' }: Surroundings = {}) {
  const { io, written } = captureIo(env, stdin, cwd)
  const exitCode = await run(argv, io)
  return { exitCode, ...written() }
}

export function captureIo(env: Readonly<Record<string, string>> = {}, stdin = '', cwd = '/') {
  const chunks = { stdout: [] as Buffer[], stderr: [] as Buffer[] }
  const capture = (name: keyof typeof chunks) => {
    const stream = new PassThrough()
    stream.on('data', (chunk: Buffer) => chunks[name].push(chunk))
    return stream
  }
  const io = {
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout: capture('stdout'),
    stderr: capture('stderr'),
    env: { CARPOOL_STATE_DIR: '/nonexistent/carpool-state', ...env },
    cwd: () => cwd,
  }
  const written = () => ({
    stdout: Buffer.concat(chunks.stdout).toString(),
    stdoutBytes: Buffer.concat(chunks.stdout),
    stderr: Buffer.concat(chunks.stderr).toString(),
  })
  /** Resolves as soon as what was written matches. */
  const untilWritten = async (name: keyof typeof chunks, pattern: RegExp) => {
    while (!pattern.test(written()[name])) await once(io[name], 'data')
  }
  return { io, written, untilWritten }
}
