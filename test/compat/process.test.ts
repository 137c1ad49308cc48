import t from 'tap'
import { startServer } from '../support/server.ts'

t.test('process hears what nobody caught: in timers, ticks and promises', async (t) => {
  const server = await startServer(t)
  await server.deploy('hears', {
    'index.mjs': `const heard = []
      process.on('uncaughtException', (error, origin) => heard.push([origin, error.message]))
      process.once('unhandledRejection', (reason, promise) => heard.push(['unhandledRejection', reason.message, promise instanceof Promise]))
      export default {
        async fetch() {
          setTimeout(() => { throw new Error('in a timer') })
          process.nextTick(() => { throw new Error('in a tick') })
          Promise.reject(new Error('first rejected'))
          await new Promise((resolve) => setTimeout(resolve, 5))
          Promise.reject(new Error('then rejected'))
          await new Promise((resolve) => setTimeout(resolve, 5))
          return Response.json(heard)
        },
      }`,
  })
  t.same(await (await server.get('/hears')).json(), [
    ['uncaughtException', 'in a tick'],
    ['unhandledRejection', 'first rejected', true],
    ['uncaughtException', 'in a timer'],
    ['unhandledRejection', 'then rejected'],
  ])
})
