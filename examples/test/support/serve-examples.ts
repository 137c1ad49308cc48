import { readFileSync } from 'node:fs'
import type { Test } from 'tap'
import { CARPOOL } from '../../../test/support/command.ts'
import { deployExample } from '../../serve/deploy-example.ts'
import { outputUntil, startNode } from './start-node.ts'

interface Served {
  /** URL below which the examples answer. */
  readonly url: string
  /** Deploys one more, or one again. @param env variables for the function */
  readonly deploy: (name: string, env?: Record<string, string>) => Promise<void>
}

/** Serves for the time of a test, and deploys examples. */
export async function serveExamples(t: Test, names: readonly string[]): Promise<Served> {
  const folder = t.testdir()
  const data = `${folder}/data`
  const flags = ['--port', '0', '--admin-port', '0', '--data', data, '--allow-egress', '127.0.0.1/32', '--max-hosts', '1']
  const server = startNode(t, [CARPOOL, 'serve', ...flags, '--json'], {
    CARPOOL_STATE_DIR: `${folder}/state`,
    CARPOOL_LOG_LEVEL: 'warn',
    CARPOOL_STANDBY_HOSTS: '0',
  })
  const { url, adminUrl } = JSON.parse(await outputUntil(server, '\n')) as { url: string; adminUrl: string }
  const token = readFileSync(`${data}/admin-token`, 'utf8').trim()
  const deploy: Served['deploy'] = (name, env) => deployExample({ adminUrl, token }, name, env)
  for (const name of names) await deploy(name)
  return { url, deploy }
}
