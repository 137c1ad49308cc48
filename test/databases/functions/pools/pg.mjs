import pg from 'pg'

// Answers each call by one query, of a pool that all calls share.
export default function open(port) {
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
}
