/**
 * An app with functions in it, which tries what an app may do, and prints what came of it as one line of JSON. It is a program of
 * its own because the test runner adds hooks to what a test starts, and host processes may not load them. Arguments: data folder,
 * folder of functions.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { StatusInfo } from '@carpool/core'
import Fastify from 'fastify'
import { carpoolGateway, CarpoolError, startCarpool } from '../../src/index.ts'

const [data = '', functions = ''] = process.argv.slice(2)
const url = 'http://functions.example/functions/'
const carpool = await startCarpool({ data, logLevel: 'error', standbyHosts: 0, adminPort: 0, url })
const app = Fastify()
app.addHook('onRequest', async (request, reply) => {
  if (request.headers.authorization === undefined) await reply.code(401).send('who is it?')
})
app.get('/', () => 'the app')
app.register(carpoolGateway, { prefix: '/functions', ...carpool.gateway })
const address = await app.listen()

const get = (path: string, init: RequestInit = {}) => fetch(address + path, { headers: { authorization: 'me' }, ...init })
const text = async (path: string, init?: RequestInit) => (await get(path, init)).text()
const errorOf = async (path: string) => (await get(path)).headers.get('x-carpool-error')
const refusal = async (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(String, (cause: unknown) => (cause instanceof CarpoolError ? `${cause.code}: ${cause.message}` : String(cause)))
const ask = async (path: string): Promise<unknown> => {
  const token = readFileSync(join(data, 'admin-token'), 'utf8').trim()
  return (await fetch(`${carpool.adminUrl}${path}`, { headers: { authorization: `Bearer ${token}` } })).json()
}

const deployed = await carpool.deploy(join(functions, 'hello.js'), { name: 'greeter', memoryMb: 64 })
const broken = await refusal(carpool.deploy(join(functions, 'broken.js'), { name: 'greeter' }))
const absent = await refusal(carpool.deploy(join(functions, 'absent.js')))
const own = await text('/')
const answered = await text('/functions/greeter/a/b?c', { method: 'PUT', body: 'x' })
const behindHook = await text('/functions/greeter/', { headers: {} })
const listed = await ask('/v1/functions')

await carpool.remove('greeter')
const removedAgain = await refusal(carpool.remove('greeter'))
const gone = await errorOf('/functions/greeter/')

await carpool.deploy(join(functions, 'slow.js'))
const arrived = once(app.server, 'request')
const slow = text('/functions/slow/')
await arrived
while (((await ask('/v1/status')) as StatusInfo).inFlight === 0) await setImmediate()
const closed = carpool.close()
const draining = await errorOf('/functions/slow/')
const underWay = await slow
await closed
await carpool.close()
const control = await refusal(ask('/healthz'))
const ownAtTheEnd = await text('/')
await app.close()

const found = { deployed, broken, absent, own, answered, behindHook, listed }
console.log(JSON.stringify({ ...found, removedAgain, gone, draining, underWay, control, ownAtTheEnd }))
