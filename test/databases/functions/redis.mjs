import Redis from 'ioredis'

const problemOf = async (run) => {
  try {
    return ['no error', await run()]
  } catch (error) {
    return [error.name, error.message]
  }
}

export const casesOf = ({ port }) => {
  const on = async (use, options = {}) => {
    const redis = new Redis({ host: '127.0.0.1', port, ...options })
    try {
      return await use(redis)
    } finally {
      redis.disconnect()
    }
  }
  return {
    'values': () =>
      on(async (redis) => {
        await redis.set('key', 'ü€😀')
        await redis.hset('hash', { a: 1, b: 'two' })
        await redis.del('list')
        await redis.rpush('list', 'x', 'y', 'z')
        return [await redis.get('key'), await redis.hgetall('hash'), await redis.lrange('list', 0, -1), await redis.get('none')]
      }),
    'bytes': () =>
      on(async (redis) => {
        const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index))
        await redis.set('bytes', bytes)
        return (await redis.getBuffer('bytes')).equals(bytes)
      }),
    'a pipeline of 1,000': () =>
      on(async (redis) => {
        const pipeline = redis.pipeline()
        await redis.del('count')
        for (let index = 0; index < 1000; index++) pipeline.incr('count')
        const results = await pipeline.exec()
        return [results.length, results.at(-1)]
      }),
    'MULTI': () => on(async (redis) => redis.multi().set('m', '1').incr('m').get('m').exec()),
    'publish and subscribe': () =>
      on((subscriber) =>
        on(async (redis) => {
          const heard = []
          const all = new Promise((resolve) => {
            subscriber.on('message', (channel, message) => {
              heard.push([channel, message])
              if (heard.length === 3) resolve()
            })
          })
          await subscriber.subscribe('one', 'two')
          await redis.publish('one', 'a')
          await redis.publish('two', 'b')
          await redis.publish('one', 'c')
          await all
          return heard
        }),
      ),
    'a pop that waits': () =>
      on((waiting) =>
        on(async (redis) => {
          await redis.del('queue')
          const popped = waiting.blpop('queue', 10)
          await redis.rpush('queue', 'work')
          return popped
        }),
      ),
    '2 MB each way': () =>
      on(async (redis) => {
        const value = 'abcdefgh'.repeat(2 ** 18)
        await redis.set('large', value)
        return (await redis.get('large')) === value
      }),
    'errors of the server': () =>
      on(async (redis) => [
        await problemOf(() => redis.call('nonsense')),
        await problemOf(async () => {
          await redis.set('text', 'x')
          return redis.incr('text')
        }),
      ]),
    'a port where nobody listens': () =>
      on(
        (redis) => {
          redis.on('error', () => {})
          return problemOf(() => redis.get('x'))
        },
        { port: 1, maxRetriesPerRequest: 1, retryStrategy: () => 5 },
      ),
  }
}
