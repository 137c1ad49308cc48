// What is measured: one query for each call, of a pool that all calls share. The same file in a function, and in plain Node.js.
import pg from 'pg'

const PORT = Number(process.env.DATABASE_PORT)
const pool = new pg.Pool({ host: '127.0.0.1', port: PORT, user: 'carpool', database: 'postgres', max: 10 })

export const ask = async () => (await pool.query('select $1::int as n, now() as at', [7])).rows[0].n

export default async () => new Response(`${await ask()}`)
