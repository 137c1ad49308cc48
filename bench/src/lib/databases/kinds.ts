import { statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { makeCertificates } from './certificates.ts'
import type { DatabaseKind } from './database.ts'

/** What a server says to bytes, or by itself: the first that comes of it; undefined if nothing does. */
async function said(port: number, bytes?: Buffer): Promise<Buffer | undefined> {
  return await new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.setTimeout(1_000, () => socket.destroy())
    socket.once('error', () => {})
    socket.once('data', (data: Buffer) => {
      resolve(data)
      socket.destroy()
    })
    socket.once('close', () => resolve(undefined))
    if (bytes !== undefined) socket.write(bytes)
  })
}

const certify = (folder: string): void => void makeCertificates(folder, 'localhost', statSync(folder).uid)

/** PostgreSQL with the user `carpool` and TLS, which is asked for by who connects. Debian: `postgresql`. */
export const POSTGRES: DatabaseKind = {
  name: 'PostgreSQL',
  programs: ['postgres', 'initdb'],
  prepare(folder, run) {
    certify(folder)
    run('initdb', ['-D', join(folder, 'data'), '-U', 'carpool', '-A', 'trust', '-E', 'UTF8', '--no-sync', '--locale=C'])
  },
  args: (folder, port) => {
    const settings = {
      listen_addresses: '127.0.0.1',
      unix_socket_directories: folder,
      fsync: 'off',
      max_connections: '300',
      shared_buffers: '32MB',
      ssl: 'on',
      ssl_cert_file: join(folder, 'server.pem'),
      ssl_key_file: join(folder, 'server.key'),
      // After a crash the others of its processes end at once, as with a machine that fails.
      restart_after_crash: 'off',
    }
    return [
      '-D',
      join(folder, 'data'),
      '-p',
      `${port}`,
      ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]),
    ]
  },
  async isReady(port) {
    // A start-up for the user `carpool`: version 3.0, then names and values. 'R' is an answer, 'E' that it still starts.
    const text = 'user\0carpool\0database\0postgres\0\0'
    const head = Buffer.alloc(8)
    head.writeInt32BE(8 + text.length, 0)
    head.writeInt32BE(196_608, 4)
    const answer = await said(port, Buffer.concat([head, Buffer.from(text)]))
    return answer?.[0] === 'R'.charCodeAt(0)
  },
}

/** MariaDB with the user `carpool`, whose password is `car`, and TLS. Debian: `mariadb-server`. */
export const MARIADB: DatabaseKind = {
  name: 'MariaDB',
  programs: ['mariadbd', 'mariadb-install-db'],
  prepare(folder, run) {
    certify(folder)
    const data = `--datadir=${join(folder, 'data')}`
    run('mariadb-install-db', ['--no-defaults', data, '--auth-root-authentication-method=normal', '--skip-test-db'])
    const sql = [
      "create user if not exists carpool@'%' identified by 'car';",
      "grant all on *.* to carpool@'%';",
      'create database if not exists test;',
    ]
    writeFileSync(join(folder, 'init.sql'), sql.join('\n'))
  },
  args: (folder, port) => [
    '--no-defaults',
    `--datadir=${join(folder, 'data')}`,
    `--socket=${join(folder, 's')}`,
    `--port=${port}`,
    '--bind-address=127.0.0.1',
    `--init-file=${join(folder, 'init.sql')}`,
    '--skip-name-resolve',
    '--max-connections=300',
    '--innodb-flush-log-at-trx-commit=0',
    '--innodb-buffer-pool-size=32M',
    `--ssl-cert=${join(folder, 'server.pem')}`,
    `--ssl-key=${join(folder, 'server.key')}`,
    `--ssl-ca=${join(folder, 'ca.pem')}`,
  ],
  // It greets whoever comes: the version of the protocol is 10.
  isReady: async (port) => (await said(port))?.[4] === 10,
}

/** Redis. Debian: `redis-server`. */
export const REDIS: DatabaseKind = {
  name: 'Redis',
  programs: ['redis-server'],
  prepare() {},
  args: (folder, port) => ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'no'],
  isReady: async (port) => (await said(port, Buffer.from('PING\r\n')))?.toString() === '+PONG\r\n',
}

/** FerretDB, which speaks MongoDB's protocol and keeps its data in SQLite. From source: `.ci/databases`. */
export const FERRETDB: DatabaseKind = {
  name: 'FerretDB',
  programs: ['ferretdb'],
  prepare() {},
  args: (folder, port) => [
    `--listen-addr=127.0.0.1:${port}`,
    '--handler=sqlite',
    `--sqlite-url=file:${folder}/`,
    `--state-dir=${folder}`,
    '--telemetry=disable',
    '--debug-addr=-',
    '--log-level=error',
  ],
  async isReady(port) {
    // An OP_MSG with { ping: 1, $db: 'admin' } as BSON.
    const document = Buffer.from('1e0000001070696e67000100000002246462000600000061646d696e0000', 'hex')
    const message = Buffer.alloc(21 + document.length)
    message.writeInt32LE(message.length, 0)
    message.writeInt32LE(1, 4)
    message.writeInt32LE(2013, 12)
    document.copy(message, 21)
    return (await said(port, message)) !== undefined
  },
}
