import mysql from 'mysql2/promise'

const problemOf = async (run) => {
  try {
    return ['no error', await run()]
  } catch (error) {
    return [error.code, error.errno, error.sqlState, error.message]
  }
}

export const casesOf = ({ port, ca }) => {
  const config = { host: '127.0.0.1', port, user: 'carpool', password: 'car', database: 'test' }
  const on = async (more, use) => {
    const connection = await mysql.createConnection({ ...config, ...more })
    try {
      return await use(connection)
    } finally {
      await connection.end()
    }
  }
  const cipher = async (connection) => {
    const [rows] = await connection.query("show status like 'Ssl_version'")
    return rows
  }
  return {
    'types': () =>
      on({}, async (connection) => {
        const [rows] = await connection.query(
          "select 1 as a, 2.5 as b, 'ü€😀' as c, x'00ff' as d, null as e, cast('2026-01-02' as char) as f",
        )
        return rows
      }),
    'prepared statements': () =>
      on({}, async (connection) => {
        const results = []
        for (const n of [1, 2, 3]) {
          const [rows] = await connection.execute('select ? * 2 as twice, ? as text', [n, `t${n}`])
          results.push(rows[0])
        }
        return results
      }),
    'transactions': () =>
      on({}, async (connection) => {
        await connection.query('create temporary table t (n int primary key) engine=innodb')
        await connection.beginTransaction()
        await connection.query('insert into t values (1)')
        await connection.rollback()
        await connection.beginTransaction()
        await connection.execute('insert into t values (?)', [2])
        await connection.commit()
        const doubled = await problemOf(() => connection.query('insert into t values (2)'))
        const [rows] = await connection.query('select n from t')
        return { doubled, rows }
      }),
    'a pool': async () => {
      const pool = mysql.createPool({ ...config, connectionLimit: 4 })
      const results = await Promise.all(Array.from({ length: 40 }, (_, n) => pool.execute('select ? + 1 as n', [n])))
      await pool.end()
      return results.reduce((sum, [rows]) => sum + rows[0].n, 0)
    },
    'rows of 4 MB': () =>
      on({}, async (connection) => {
        const [rows] = await connection.query("select repeat('x', 4000) as text, seq from seq_1_to_1000")
        return [rows.length, rows.reduce((sum, { text }) => sum + text.length, 0)]
      }),
    'errors of the server': () =>
      on({}, async (connection) => [
        await problemOf(() => connection.query('selec 1')),
        (await connection.query('select 1 as still'))[0],
      ]),
    'a wrong password': async () => (await problemOf(() => on({ password: 'no' }, () => 0))).slice(0, 3),
    'a port where nobody listens': async () => {
      const [code, , , message] = await problemOf(() => on({ port: 1 }, () => 0))
      return [code, message]
    },
    'TLS, verified': () => on({ host: 'localhost', ssl: { ca, verifyIdentity: true } }, cipher),
    'TLS that is not verified': () => on({ ssl: { rejectUnauthorized: false } }, cipher),
    'TLS with an authority that nobody knows': async () => (await problemOf(() => on({ ssl: {} }, cipher)))[0],
  }
}
