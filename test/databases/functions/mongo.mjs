import { MongoClient } from 'mongodb'

export const casesOf = ({ port }) => {
  const on = async (use) => {
    const client = new MongoClient(`mongodb://127.0.0.1:${port}/`, { serverSelectionTimeoutMS: 10_000 })
    try {
      return await use(client.db('test').collection(`c${Math.random().toString(36).slice(2)}`), client)
    } finally {
      await client.close()
    }
  }
  return {
    'insert and find': () =>
      on(async (things) => {
        await things.insertMany(Array.from({ length: 50 }, (_, n) => ({ n, name: `ü${n}` })))
        const found = await things
          .find({ n: { $gte: 45 } })
          .sort({ n: 1 })
          .project({ _id: 0 })
          .toArray()
        return { found, count: await things.countDocuments({}) }
      }),
    'update and delete': () =>
      on(async (things) => {
        await things.insertOne({ n: 1 })
        const { modifiedCount } = await things.updateOne({ n: 1 }, { $set: { m: 2 } })
        const found = await things.findOne({ n: 1 }, { projection: { _id: 0 } })
        const { deletedCount } = await things.deleteMany({})
        return { modifiedCount, found, deletedCount }
      }),
    'aggregate': () =>
      on(async (things) => {
        await things.insertMany(Array.from({ length: 10 }, (_, n) => ({ kind: n % 2, n })))
        return things.aggregate([{ $group: { _id: '$kind', total: { $sum: '$n' } } }, { $sort: { _id: 1 } }]).toArray()
      }),
    'a cursor in batches': () =>
      on(async (things) => {
        await things.insertMany(Array.from({ length: 250 }, (_, n) => ({ n })))
        let sum = 0
        for await (const { n } of things.find({}, { batchSize: 50 })) sum += n
        return sum
      }),
    'a session': () =>
      on(async (things, client) =>
        client.withSession(async (session) => {
          await things.insertOne({ n: 1 }, { session })
          return (await things.find({}, { session }).toArray()).length
        }),
      ),
  }
}
