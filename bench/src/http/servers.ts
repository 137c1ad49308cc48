import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startCarpool } from '../lib/carpool-server.ts'
import { parseJsonLine, startChildServer } from '../lib/child-server.ts'
import { temporaryFolder } from '../lib/temporary-folder.ts'
import { pathOf, type WorkloadName } from './workloads.ts'

/** In the order of the tables. `carpool-before` is the Carpool of another checkout. */
export const SERVER_NAMES = ['fastify', 'carpool', 'carpool-before', 'workerd', 'functions-framework', 'split'] as const
export type ServerName = (typeof SERVER_NAMES)[number]

/** A server that answers a workload at its URL. */
export interface BenchedServer extends AsyncDisposable {
  readonly name: ServerName
  readonly url: string
  readonly pid: number
}

export interface ServerOptions {
  readonly workload: WorkloadName
  /** Root folder of the checkout of `carpool-before`; absent: it is not among the servers. */
  readonly checkout: string | undefined
}

/** The servers that a run has: all that can do the workload. */
export function serversFor({ workload, checkout }: ServerOptions): ServerName[] {
  return SERVER_NAMES.filter((name) => {
    if (name === 'carpool-before') return checkout !== undefined
    // A timer needs somebody who keeps it and enters the isolate again, which would no longer be the smallest thing.
    return name !== 'split' || workload !== 'timer'
  })
}

export async function startServer(name: ServerName, { workload, checkout }: ServerOptions): Promise<BenchedServer> {
  switch (name) {
    case 'carpool':
      return startCarpoolFunction(name, workload, undefined)
    case 'carpool-before':
      return startCarpoolFunction(name, workload, checkout)
    case 'workerd':
      return startWorkerd(workload)
    case 'fastify':
      return startScript(name, workload, 'fastify-server.js')
    case 'functions-framework':
      return startScript(name, workload, 'functions-framework-server.js')
    case 'split':
      return startScript(name, workload, 'split-gateway.js')
  }
}

async function startCarpoolFunction(
  name: ServerName,
  workload: WorkloadName,
  checkout: string | undefined,
): Promise<BenchedServer> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await temporaryFolder())
  const dataDir = join(folder.path, 'data')
  const server = stack.use(await startCarpool({ dataDir, ...(checkout !== undefined && { checkout }) }))
  const { url } = await server.deploy(localPath(`functions/${workload}.js`), workload)
  const kept = stack.move()
  return { name, url, pid: server.pid, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

/** A server as a program for Node.js that prints its address when it listens. */
async function startScript(name: ServerName, workload: WorkloadName, file: string): Promise<BenchedServer> {
  const server = await startChildServer({
    command: process.execPath,
    args: [localPath(file), workload],
    env: { ...process.env, NODE_ENV: 'production' },
    parseReady: (line) => parseJsonLine<{ url: string }>(line)?.url,
  })
  return { name, url: server.ready + pathOf(workload), pid: server.pid, [Symbol.asyncDispose]: () => server.stop() }
}

async function startWorkerd(workload: WorkloadName): Promise<BenchedServer> {
  const server = await startChildServer({
    command: workerdBinary(),
    args: ['serve', '--control-fd=3', localPath('workerd.capnp'), workload],
    readyFd: 3,
    parseReady: (line) => parseJsonLine<{ port: number }>(line)?.port,
  })
  const url = `http://127.0.0.1:${server.ready}${pathOf(workload)}`
  return { name: 'workerd', url, pid: server.pid, [Symbol.asyncDispose]: () => server.stop() }
}

/** The binary itself: the package's command would be a Node.js process around it. */
function workerdBinary(): string {
  const require = createRequire(import.meta.url)
  const platform = `${process.platform}-${process.arch === 'x64' ? '64' : process.arch}`
  const manifest = createRequire(require.resolve('workerd')).resolve(`@cloudflare/workerd-${platform}/package.json`)
  return join(dirname(manifest), 'bin/workerd')
}

function localPath(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url))
}
