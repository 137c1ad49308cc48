// Functions that answer each call by one query, of a pool that all calls share.
import pg from 'pg'
import mysql from 'mysql2/promise'
import Redis from 'ioredis'

export const pools = {
  pg(port) {
    const pool = new pg.Pool({
      host: '127.0.0.1',
      port,
      user: 'carpool',
      database: 'postgres',
      max: 10,
      connectionTimeoutMillis: 3000,
      query_timeout: 3000,
    })
    pool.on('error', () => {})
    return async (n) => (await pool.query('select $1::int as n from pg_sleep(0.002)', [n])).rows[0].n
  },
  mysql(port) {
    const pool = mysql.createPool({
      host: '127.0.0.1',
      port,
      user: 'carpool',
      password: 'car',
      connectionLimit: 10,
      connectTimeout: 3000,
    })
    return async (n) => {
      const connection = await pool.getConnection()
      try {
        const [rows] = await connection.query({ sql: 'select ? as n, sleep(0.002)', values: [n], timeout: 3000 })
        connection.release()
        return rows[0].n
      } catch (error) {
        // What it still answers is for nobody.
        connection.destroy()
        throw error
      }
    }
  },
  redis(port) {
    const redis = new Redis({
      host: '127.0.0.1',
      port,
      maxRetriesPerRequest: 1,
      commandTimeout: 3000,
      connectTimeout: 3000,
      retryStrategy: () => 50,
    })
    redis.on('error', () => {})
    return async (n) => Number(await redis.echo(n))
  },
}
