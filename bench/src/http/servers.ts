import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startCarpool } from '../lib/carpool-server.ts'
import { parseJsonLine, startChildServer } from '../lib/child-server.ts'
import { temporaryFolder } from '../lib/temporary-folder.ts'

export const SERVER_NAMES = ['fastify', 'carpool', 'workerd'] as const
export type ServerName = (typeof SERVER_NAMES)[number]

/** A server that answers `hello` at its URL. */
export interface HelloServer extends AsyncDisposable {
  readonly name: ServerName
  readonly url: string
  readonly pid: number
}

/** The same path for all, so that the requests have the same size. */
const PATH = '/hello/'

export async function startHelloServer(name: ServerName): Promise<HelloServer> {
  if (name === 'carpool') return startCarpoolHello()
  return name === 'fastify' ? startFastify() : startWorkerd()
}

async function startCarpoolHello(): Promise<HelloServer> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await temporaryFolder())
  const server = stack.use(await startCarpool({ dataDir: join(folder.path, 'data') }))
  const { url } = await server.deploy(localPath('hello/hello.js'), 'hello')
  const kept = stack.move()
  return { name: 'carpool', url, pid: server.pid, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

async function startFastify(): Promise<HelloServer> {
  const server = await startChildServer({
    command: process.execPath,
    args: [localPath('fastify-hello.js')],
    parseReady: (line) => parseJsonLine<{ url: string }>(line)?.url,
  })
  return { name: 'fastify', url: server.ready + PATH, pid: server.pid, [Symbol.asyncDispose]: () => server.stop() }
}

async function startWorkerd(): Promise<HelloServer> {
  const server = await startChildServer({
    command: workerdBinary(),
    args: ['serve', '--control-fd=3', localPath('hello.capnp')],
    readyFd: 3,
    parseReady: (line) => parseJsonLine<{ port: number }>(line)?.port,
  })
  const url = `http://127.0.0.1:${server.ready}${PATH}`
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
