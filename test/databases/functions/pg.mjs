import pg from 'pg'
import Cursor from 'pg-cursor'

const on = async (config, use) => {
  const client = new pg.Client(config)
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

/** What an error says, but for places in code. */
const problemOf = async (run) => {
  try {
    return ['no error', await run()]
  } catch (error) {
    // Node.js adds to some how Node.js may be started.
    return [error.name, error.code, error.message.split('; ')[0]]
  }
}

/** @param ca the authority of the server's certificate */
export const casesOf = ({ port, ca }) => {
  const config = { host: '127.0.0.1', port, user: 'carpool', database: 'postgres' }
  const local = { ...config, host: 'localhost' }
  const secure = (ssl, base = local) =>
    on({ ...base, ssl }, async (client) => {
      const { rows } = await client.query('select ssl, version from pg_stat_ssl where pid = pg_backend_pid()')
      return { rows, isEncrypted: client.connection.stream.encrypted, isAuthorized: client.connection.stream.authorized }
    })
  return {
    'types': () =>
      on(config, async (client) => {
        const { rows, fields, command, rowCount } = await client.query(
          "select 1::int4 as a, 2::int8 as b, 1.5::numeric as c, 'ü€😀'::text as d, '\\x00ff'::bytea as e, null as f, array[1,2] as g, '{\"h\":1}'::jsonb as h, true as i, '2026-01-02'::date::text as j",
        )
        return { rows, names: fields.map(({ name, dataTypeID }) => [name, dataTypeID]), command, rowCount }
      }),
    'a prepared statement': () =>
      on(config, async (client) => {
        const results = []
        for (const value of [1, 2, 3]) {
          const { rows } = await client.query({ name: 'twice', text: 'select $1::int * 2 as twice', values: [value] })
          results.push(rows[0].twice)
        }
        const { rows } = await client.query('select count(*)::int as count from pg_prepared_statements where name = $1', [
          'twice',
        ])
        return { results, rows }
      }),
    'transactions': () =>
      on(config, async (client) => {
        await client.query('create temporary table t (n int primary key)')
        await client.query('begin')
        await client.query('insert into t values (1)')
        await client.query('rollback')
        await client.query('begin')
        await client.query('insert into t values (2)')
        const doubled = await problemOf(() => client.query('insert into t values (2)'))
        const aborted = await problemOf(() => client.query('select 1'))
        await client.query('rollback')
        await client.query('insert into t values (3)')
        return { doubled, aborted, rows: (await client.query('select * from t')).rows }
      }),
    'a cursor': () =>
      on(config, async (client) => {
        const cursor = client.query(new Cursor('select n from generate_series(1, 1000) as n'))
        const sizes = []
        let sum = 0
        for (let rows = await cursor.read(300); rows.length > 0; rows = await cursor.read(300)) {
          sizes.push(rows.length)
          for (const { n } of rows) sum += n
        }
        await cursor.close()
        return { sizes, sum }
      }),
    'LISTEN and NOTIFY': () =>
      on(config, (listener) =>
        on(config, async (client) => {
          const heard = []
          const all = new Promise((resolve) => {
            listener.on('notification', ({ channel, payload }) => {
              heard.push([channel, payload])
              if (heard.length === 3) resolve()
            })
          })
          await listener.query('listen news')
          for (const text of ['a', 'b', 'ü']) await client.query('select pg_notify($1, $2)', ['news', text])
          await all
          return heard
        }),
      ),
    'rows of 8 MB': () =>
      on(config, async (client) => {
        const { rows } = await client.query("select repeat('x', 1000) || n as text from generate_series(1, 8000) as n")
        return [rows.length, rows.reduce((sum, { text }) => sum + text.length, 0), rows.at(-1).text.slice(-6)]
      }),
    '4 MB sent at once': () =>
      on(config, async (client) => {
        const bytes = Buffer.alloc(4 * 1024 * 1024, 'abcdefg')
        const { rows } = await client.query('select length($1::bytea) as length, md5($1::bytea) as md5', [bytes])
        return rows
      }),
    'errors of the server': () =>
      on(config, async (client) => [
        await problemOf(() => client.query('selec 1')),
        await problemOf(() => client.query('select 1/0')),
        (await client.query('select 1 as still')).rows,
      ]),
    'a database that does not exist': () => problemOf(() => on({ ...config, database: 'nowhere' }, () => 0)),
    'a port where nobody listens': async () => {
      const [name, code, message] = await problemOf(() => on({ ...config, port: 1 }, () => 0))
      return [name, code, message]
    },
    'TLS, verified by the authority and the name': () => secure({ ca, rejectUnauthorized: true }),
    'TLS, verified by the address': () => secure({ ca }, config),
    'TLS that is not verified': () => secure({ rejectUnauthorized: false }),
    'TLS with an authority that nobody knows': () => problemOf(() => secure({ rejectUnauthorized: true })),
    'TLS with another name': () => problemOf(() => secure({ ca, servername: 'elsewhere.example' })),
    'TLS with a check of its own': () => secure({ ca, servername: 'elsewhere.example', checkServerIdentity: () => undefined }),
    'TLS with a check of its own that refuses': () =>
      problemOf(() => secure({ ca, checkServerIdentity: (name, { subject }) => new Error(`not ${name} ${subject.CN}`) })),
    'a pool': async () => {
      const pool = new pg.Pool({ ...config, max: 4 })
      const results = await Promise.all(Array.from({ length: 40 }, (_, n) => pool.query('select $1::int as n', [n])))
      const sum = results.reduce((total, { rows }) => total + rows[0].n, 0)
      const counts = [pool.totalCount, pool.idleCount, pool.waitingCount]
      await pool.end()
      return { sum, counts }
    },
  }
}
