import { MongoClient } from 'mongodb'

// Answers each call by one command, of a pool that all calls share. One more connection looks whether the database is there.
export default function open(port) {
  const client = new MongoClient(`mongodb://127.0.0.1:${port}/`, {
    maxPoolSize: 10,
    connectTimeoutMS: 3000,
    socketTimeoutMS: 3000,
    serverSelectionTimeoutMS: 3000,
    heartbeatFrequencyMS: 500,
  })
  return async (n) => n * (await client.db('test').command({ ping: 1 })).ok
}
