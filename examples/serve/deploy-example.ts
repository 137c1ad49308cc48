import { run } from '@carpool/cli'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'

interface ControlPlane {
  readonly adminUrl: string
  readonly token: string
}

/** Deploys `examples/<name>` as the command does. @throws Error with what the command says if it refuses */
export async function deployExample(
  { adminUrl, token }: ControlPlane,
  name: string,
  env: Record<string, string> = {},
): Promise<void> {
  const folder = join(import.meta.dirname, '..', name)
  const variables = Object.entries(env).flatMap(([key, value]) => ['--env', `${key}=${value}`])
  const stderr = new PassThrough()
  const said = text(stderr)
  const io = { stdin: process.stdin, stdout: new PassThrough().resume(), stderr, env: process.env, cwd: () => process.cwd() }
  const exitCode = await run(['deploy', folder, '--url', adminUrl, '--token', token, ...variables], io)
  stderr.end()
  if (exitCode !== 0) throw new Error(`${name} was not deployed: ${(await said).trim()}`)
}
