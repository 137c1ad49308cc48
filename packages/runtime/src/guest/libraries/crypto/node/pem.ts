import { type Bytes, bytesOf, concat } from '../../node/bytes.ts'
import { runCipher } from '../ciphers.ts'
import { DerError, field, octets, oid, readAll, readElement, readSequence, sequence, TAGS, write } from '../der.ts'
import { digest, pbkdf2 } from '../derivation.ts'
import { natives } from '../natives.ts'
import { encodeUtf8 } from '../../../web-api/encoding.ts'
import { fillRandom } from '../../../web-api/host.ts'
import { invalidType, invalidValue, nodeError } from '../../node/errors.ts'

export interface Pem {
  readonly label: string
  readonly content: Bytes
  /** Lines in front of the content, as those of an encrypted key of old style. */
  readonly headers: ReadonlyMap<string, string>
}

const BEGIN = /-----BEGIN ([A-Z0-9 ]+)-----/g
/** Labels that begin a block without an end; a text with more is none. Each is looked for through all of the text. */
const MOST_OPEN = 16
const HEADER = /^([\w-]+): (.*)$/

/** The first block that has an end, in time that goes with the length of the text. */
function findBlock(text: string): { readonly label: string; readonly lines: string } | undefined {
  const open = new Set<string>()
  for (const { 0: line, 1: label = '', index } of text.matchAll(BEGIN)) {
    if (open.has(label)) continue
    const start = index + line.length
    const end = text.indexOf(`-----END ${label}-----`, start)
    if (end !== -1) return { label, lines: text.slice(start, end) }
    if (open.size === MOST_OPEN) return undefined
    open.add(label)
  }
  return undefined
}

/** The first block that a text has; undefined if it has none that can be read. */
export function readPem(text: string): Pem | undefined {
  const block = findBlock(text)
  if (block === undefined) return undefined
  const headers = new Map<string, string>()
  let base64 = ''
  for (const line of block.lines.split(/\r?\n/)) {
    const header = HEADER.exec(line)
    if (header === null) base64 += line
    else headers.set(header[1]!, header[2]!)
  }
  try {
    return { label: block.label, content: Uint8Array.fromBase64(base64), headers }
  } catch {
    return undefined
  }
}

export function writePem(label: string, content: Uint8Array): string {
  const lines = content.toBase64().match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}

function missingPassphrase(): Error {
  return nodeError('ERR_MISSING_PASSPHRASE', 'Passphrase required for encrypted key', TypeError)
}

function badDecrypt(): Error {
  const error = nodeError('ERR_OSSL_BAD_DECRYPT', 'error:1C800064:Provider routines::bad decrypt')
  return Object.assign(error, { library: 'Provider routines', reason: 'bad decrypt' })
}

function decrypted(name: string, key: Bytes, iv: Bytes, data: Bytes): Bytes {
  try {
    return runCipher(false, { name, key, iv, data })
  } catch {
    throw badDecrypt()
  }
}

/** Undoes the encryption of a block of old style (RFC 1421, and OpenSSL's own way to make a key). */
export function openPem({ content, headers }: Pem, passphrase: Bytes | undefined): Bytes {
  const info = headers.get('DEK-Info')
  if (info === undefined) return content
  if (passphrase === undefined) throw missingPassphrase()
  const [name = '', ivText = ''] = info.split(',')
  const cipher = natives.cipherInfo(name)
  if (cipher === undefined) throw nodeError('ERR_OSSL_UNSUPPORTED', 'Unknown cipher')
  const iv = ivOf(ivText)
  let key: Bytes = new Uint8Array(0)
  for (let last: Bytes = new Uint8Array(0); key.length < cipher[1]; key = concat(key, last)) {
    last = digest('MD5', last, passphrase, iv.subarray(0, 8))
  }
  return decrypted(name, key.subarray(0, cipher[1]), iv, content)
}

function ivOf(hex: string): Bytes {
  try {
    return Uint8Array.fromHex(hex)
  } catch {
    throw new DerError('The IV is no hexadecimal number.')
  }
}

/** RFC 8018, appendix A.4 and B. */
const PBES2 = '2a864886f70d01050d'
const PBKDF2 = '2a864886f70d01050c'
const PRFS: Readonly<Record<string, string>> = {
  '2a864886f70d0207': 'SHA1',
  '2a864886f70d0208': 'SHA224',
  '2a864886f70d0209': 'SHA256',
  '2a864886f70d020a': 'SHA384',
  '2a864886f70d020b': 'SHA512',
}
const CIPHERS: Readonly<Record<string, string>> = {
  '608648016503040102': 'aes-128-cbc',
  '608648016503040116': 'aes-192-cbc',
  '60864801650304012a': 'aes-256-cbc',
  '2a864886f70d0307': 'des-ede3-cbc',
}

function numberOf(bytes: Bytes): number {
  return bytes.reduce((number, byte) => number * 256 + byte, 0)
}

const MAX_ITERATIONS = 2 ** 31 - 1

/** Opens an EncryptedPrivateKeyInfo (RFC 5958). @throws DerError, Error */
export function openPkcs8(der: Bytes, passphrase: Bytes | undefined): Bytes {
  const whole = readSequence(der)
  const [algorithm, data] = [field(whole, 0), field(whole, 1)]
  const scheme = readAll(algorithm.content)
  if (field(scheme, 0).content.toHex() !== PBES2) throw unknownEncryption()
  if (passphrase === undefined) throw missingPassphrase()
  const parameters = readAll(field(scheme, 1).content)
  const [derivation, encryption] = [readAll(field(parameters, 0).content), readAll(field(parameters, 1).content)]
  const [salt, rounds, ...rest] = readAll(field(derivation, 1).content)
  const prf = rest.find(({ tag }) => tag === TAGS.sequence)
  const hash = PRFS[prf === undefined ? '2a864886f70d0207' : readElement(prf.content).content.toHex()]
  const name = CIPHERS[field(encryption, 0).content.toHex()]
  const iterations = rounds === undefined ? 0 : numberOf(rounds.content)
  const isKnown = field(derivation, 0).content.toHex() === PBKDF2 && hash !== undefined && name !== undefined
  if (!isKnown || salt === undefined || iterations < 1 || iterations > MAX_ITERATIONS) throw unknownEncryption()
  const key = pbkdf2(hash, passphrase, salt.content, iterations, natives.cipherInfo(name)![1])
  return decrypted(name, key, field(encryption, 1).content, data.content)
}

function unknownEncryption(): DerError {
  return new DerError('The key is encrypted in a way that is not known.')
}

const ITERATIONS = 2048

/** Makes an EncryptedPrivateKeyInfo. */
export function sealPkcs8(der: Bytes, cipher: unknown, passphrase: unknown): Bytes {
  if (typeof cipher !== 'string') throw invalidValue('options.cipher', cipher)
  const secret = typeof passphrase === 'string' ? encodeUtf8(passphrase) : bytesOf(passphrase)
  if (secret === undefined) throw invalidValue('options.passphrase', passphrase)
  const known = Object.entries(CIPHERS).find(([, name]) => name === cipher.toLowerCase())
  if (known === undefined) throw nodeError('ERR_CRYPTO_UNKNOWN_CIPHER', 'Unknown cipher')
  const [cipherOid, name] = known
  const [, keyBytes, ivBytes] = natives.cipherInfo(name)!
  const random = new Uint8Array(16 + ivBytes)
  fillRandom(random)
  const [salt, iv] = [random.slice(0, 16), random.slice(16)]
  const key = pbkdf2('SHA256', secret, salt, ITERATIONS, keyBytes)
  const prf = sequence(oid('2a864886f70d0209'), write(TAGS.nothing))
  const rounds = write(TAGS.integer, Uint8Array.of(ITERATIONS >> 8, ITERATIONS & 0xff))
  const derivation = sequence(oid(PBKDF2), sequence(octets(salt), rounds, prf))
  const scheme = sequence(oid(PBES2), sequence(derivation, sequence(oid(cipherOid), octets(iv))))
  return sequence(scheme, octets(runCipher(true, { name, key, iv, data: der })))
}

export function passphraseBytes(passphrase: unknown): Bytes | undefined {
  if (passphrase === undefined || passphrase === null) return undefined
  if (typeof passphrase === 'string') return encodeUtf8(passphrase)
  const bytes = bytesOf(passphrase)
  if (bytes !== undefined) return bytes
  throw invalidType('key.passphrase', 'of type string or an instance of ArrayBuffer, Buffer, TypedArray, or DataView', passphrase)
}

/** The SPKI that an X.509 certificate is about. @throws DerError */
export function spkiOfCertificate(der: Bytes): Bytes {
  const fields = readAll(field(readSequence(der), 0).content)
  // The version stands in front, where it is said.
  return field(fields, fields[0]?.tag === TAGS.first ? 6 : 5).whole
}
