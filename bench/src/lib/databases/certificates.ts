import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The certificates of a test's own authority, in PEM form, and where those of the server are. */
export interface Certificates {
  readonly ca: string
  readonly certFile: string
  readonly keyFile: string
}

const EC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

/** Makes an authority, and a certificate of it for `localhost` and 127.0.0.1, in a folder, for who owns the folder. */
export function makeCertificates(folder: string, name = 'localhost', uid?: number): Certificates {
  const file = (path: string): string => join(folder, path)
  const run = (...args: string[]): void => void execFileSync('openssl', args, { stdio: 'ignore' })
  run('req', '-x509', ...EC, '-days', '2', '-subj', '/CN=test authority', '-keyout', file('ca.key'), '-out', file('ca.pem'))
  const alt = `subjectAltName=DNS:${name},IP:127.0.0.1`
  const request = ['-subj', `/CN=${name}`, '-addext', alt, '-keyout', file('server.key'), '-out', file('server.csr')]
  run('req', '-new', ...EC, ...request)
  const signed = ['-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-CAcreateserial', '-copy_extensions', 'copy', '-days', '2']
  run('x509', '-req', '-in', file('server.csr'), ...signed, '-out', file('server.pem'))
  chmodSync(file('server.key'), 0o600)
  if (uid !== undefined) for (const path of ['server.key', 'server.pem', 'ca.pem']) chownSync(file(path), uid, uid)
  return { ca: readFileSync(file('ca.pem'), 'utf8'), certFile: file('server.pem'), keyFile: file('server.key') }
}
