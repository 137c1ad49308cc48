/** `crypto.subtle` beside that of Node.js: the same code has the same answers, and what one writes the other reads. */
import fc from 'fast-check'
import t from 'tap'
import { inGuest, inNode } from './support/side-by-side.ts'

const { evaluate, guest } = inGuest()
t.teardown(() => guest.isolate.dispose())

const hexBytes = (minLength: number, maxLength = minLength): fc.Arbitrary<string> =>
  fc.uint8Array({ minLength, maxLength }).map((bytes) => bytes.toHex())
const text = hexBytes(0, 300)
const HASHES = ['SHA-1', 'SHA-256', 'SHA-384', 'SHA-512'] as const
const hash = fc.constantFrom(...HASHES)

/** The same code gives the same in both. */
async function same(code: string, input: fc.Arbitrary<unknown>, numRuns = 60): Promise<void> {
  await fc.assert(
    fc.asyncProperty(input, async (given) => {
      t.same(await evaluate(code, given), await inNode(code, given))
    }),
    { numRuns, endOnFailure: true },
  )
}

/** What `write` makes in one of them, `read` takes in the other, both ways. */
async function exchanged(write: string, read: string, input: fc.Arbitrary<object>, numRuns = 12): Promise<void> {
  await fc.assert(
    fc.asyncProperty(input, async (given) => {
      for (const [from, to] of [
        [evaluate, inNode],
        [inNode, evaluate],
      ] as const) {
        const made = await from(write, given)
        t.equal(await to(read, { ...given, made }), true)
      }
    }),
    { numRuns, endOnFailure: true },
  )
}

t.test('digests', () =>
  same(
    `return [hex(await crypto.subtle.digest(input.hash, un(input.data))), hex(await crypto.subtle.digest({ name: input.hash.toLowerCase() }, un(input.data).buffer))]`,
    fc.record({ hash: fc.constantFrom(...HASHES, 'SHA3-256'), data: text }),
  ),
)

t.test('HMAC', () =>
  same(
    `const key = await crypto.subtle.importKey('raw', un(input.key), { name: 'hmac', hash: input.hash }, true, ['verify', 'sign', 'sign'])
     const signature = await crypto.subtle.sign('HMAC', key, un(input.data))
     return [hex(signature), await crypto.subtle.verify('HMAC', key, signature, un(input.data)), await crypto.subtle.verify('HMAC', key, un('00'), un(input.data)),
       await crypto.subtle.exportKey('jwk', key), key.algorithm, key.usages, key.type, key.extractable]`,
    fc.record({ hash, key: hexBytes(1, 200), data: text }),
  ),
)

t.test('AES encrypts as in Node, and decrypts what that did', () =>
  same(
    `const key = await crypto.subtle.importKey('raw', un(input.key), input.mode, true, ['encrypt', 'decrypt'])
     const algorithm = { name: input.mode, iv: un(input.mode === 'AES-GCM' ? input.nonce : input.iv), counter: un(input.iv), length: input.length, tagLength: input.tagLength, additionalData: un(input.aad) }
     const sealed = await crypto.subtle.encrypt(algorithm, key, un(input.data))
     const opened = await crypto.subtle.decrypt(algorithm, key, sealed)
     const broken = new Uint8Array(sealed)
     broken[broken.length - 1] ^= 1
     return [hex(sealed), hex(opened), input.mode === 'AES-CBC' ? '' : await nameOf(() => crypto.subtle.decrypt(algorithm, key, broken)), await crypto.subtle.exportKey('jwk', key)]`,
    fc.record({
      mode: fc.constantFrom('AES-GCM', 'AES-CBC', 'AES-CTR'),
      key: fc.constantFrom(16, 24, 32).chain((size) => hexBytes(size)),
      nonce: fc.constantFrom(12, 16).chain((size) => hexBytes(size)),
      iv: fc.oneof(
        hexBytes(16),
        hexBytes(14).map((start) => `${start}ffff`),
      ),
      length: fc.constantFrom(8, 16, 64, 127, 128),
      tagLength: fc.constantFrom(32, 64, 96, 104, 112, 120, 128),
      aad: text,
      data: text,
    }),
    120,
  ),
)

t.test('AES-KW', () =>
  same(
    `const key = await crypto.subtle.importKey('raw', un(input.key), 'AES-KW', true, ['wrapKey', 'unwrapKey'])
     const inner = await crypto.subtle.importKey('raw', un(input.inner), 'AES-GCM', true, ['encrypt', 'decrypt'])
     const wrapped = await crypto.subtle.wrapKey('raw', inner, key, 'AES-KW')
     const again = await crypto.subtle.unwrapKey('raw', wrapped, key, { name: 'AES-KW' }, 'AES-GCM', true, ['decrypt'])
     const asJson = await crypto.subtle.wrapKey('jwk', inner, key, 'AES-KW')
     const json = await crypto.subtle.unwrapKey('jwk', asJson, key, 'AES-KW', 'AES-GCM', true, ['decrypt'])
     return [hex(wrapped), hex(await crypto.subtle.exportKey('raw', again)), hex(await crypto.subtle.exportKey('raw', json))]`,
    fc.record({ key: hexBytes(32), inner: hexBytes(16) }),
    20,
  ),
)

t.test('PBKDF2 and HKDF', () =>
  same(
    `const derive = async (algorithm) => {
       const key = await crypto.subtle.importKey('raw', un(input.key), algorithm.name, false, ['deriveBits', 'deriveKey'])
       const aes = await crypto.subtle.deriveKey(algorithm, key, { name: 'AES-GCM', length: 256 }, true, ['encrypt'])
       return [hex(await crypto.subtle.deriveBits(algorithm, key, input.bits)), hex(await crypto.subtle.exportKey('raw', aes))]
     }
     return [await derive({ name: 'PBKDF2', hash: input.hash, salt: un(input.salt), iterations: input.iterations }), await derive({ name: 'HKDF', hash: input.hash, salt: un(input.salt), info: un(input.info) })]`,
    fc.record({
      hash,
      key: hexBytes(0, 200),
      salt: hexBytes(0, 100),
      info: hexBytes(0, 100),
      iterations: fc.integer({ min: 1, max: 5000 }),
      bits: fc.integer({ min: 1, max: 60 }).map((bytes) => bytes * 8),
    }),
    30,
  ),
)

const CURVES = ['P-256', 'P-384', 'P-521'] as const

t.test('ECDSA, by keys in every form', () =>
  exchanged(
    `const algorithm = { name: 'ECDSA', namedCurve: input.curve, hash: input.hash }
     const { publicKey, privateKey } = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
     const [spki, raw, pkcs8] = [await crypto.subtle.exportKey('spki', publicKey), await crypto.subtle.exportKey('raw', publicKey), await crypto.subtle.exportKey('pkcs8', privateKey)].map(hex)
     return { spki, raw, pkcs8, jwk: await crypto.subtle.exportKey('jwk', privateKey), signature: hex(await crypto.subtle.sign(algorithm, privateKey, un(input.data))) }`,
    `const algorithm = { name: 'ECDSA', namedCurve: input.curve, hash: input.hash }
     const { made } = input
     const load = (format, data, usage) => crypto.subtle.importKey(format, data, algorithm, true, [usage])
     const { d, ...open } = made.jwk
     const keys = [await load('spki', un(made.spki), 'verify'), await load('raw', un(made.raw), 'verify'), await load('jwk', { ...open, key_ops: ['verify'] }, 'verify')]
     const results = await Promise.all(keys.map((key) => crypto.subtle.verify(algorithm, key, un(made.signature), un(input.data))))
     const secret = [await load('pkcs8', un(made.pkcs8), 'sign'), await load('jwk', made.jwk, 'sign')]
     for (const key of secret) {
       results.push(await crypto.subtle.verify(algorithm, keys[0], await crypto.subtle.sign(algorithm, key, un(input.data)), un(input.data)))
       results.push(hex(await crypto.subtle.exportKey('pkcs8', key)) === made.pkcs8, (await crypto.subtle.exportKey('jwk', key)).d === d)
     }
     results.push(hex(await crypto.subtle.exportKey('raw', keys[2])) === made.raw, hex(await crypto.subtle.exportKey('spki', keys[1])) === made.spki)
     return results.every((result) => result === true) || results`,
    fc.record({ curve: fc.constantFrom(...CURVES), hash, data: text }),
  ),
)

t.test('Ed25519', () =>
  exchanged(
    `const { publicKey, privateKey } = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
     return { raw: hex(await crypto.subtle.exportKey('raw', publicKey)), spki: hex(await crypto.subtle.exportKey('spki', publicKey)), jwk: await crypto.subtle.exportKey('jwk', privateKey),
       pkcs8: hex(await crypto.subtle.exportKey('pkcs8', privateKey)), signature: hex(await crypto.subtle.sign('Ed25519', privateKey, un(input.data))) }`,
    `const { made } = input
     const key = await crypto.subtle.importKey('raw', un(made.raw), 'Ed25519', true, ['verify'])
     const other = await crypto.subtle.importKey('spki', un(made.spki), 'Ed25519', true, ['verify'])
     const own = await crypto.subtle.importKey('pkcs8', un(made.pkcs8), 'Ed25519', true, ['sign'])
     const json = await crypto.subtle.importKey('jwk', made.jwk, 'Ed25519', true, ['sign'])
     return await crypto.subtle.verify('Ed25519', key, un(made.signature), un(input.data)) && hex(await crypto.subtle.sign('Ed25519', own, un(input.data))) === made.signature &&
       hex(await crypto.subtle.sign('Ed25519', json, un(input.data))) === made.signature && (await crypto.subtle.exportKey('jwk', other)).x === made.jwk.x`,
    fc.record({ data: text }),
  ),
)

t.test('ECDH and X25519', () =>
  exchanged(
    `const algorithm = { name: input.curve === 'X25519' ? 'X25519' : 'ECDH', namedCurve: input.curve }
     const make = () => crypto.subtle.generateKey(algorithm, true, ['deriveBits', 'deriveKey'])
     const [one, other] = [await make(), await make()]
     const bits = await crypto.subtle.deriveBits({ ...algorithm, public: other.publicKey }, one.privateKey, input.bits)
     return { pkcs8: hex(await crypto.subtle.exportKey('pkcs8', other.privateKey)), raw: hex(await crypto.subtle.exportKey('raw', one.publicKey)), bits: hex(bits) }`,
    `const algorithm = { name: input.curve === 'X25519' ? 'X25519' : 'ECDH', namedCurve: input.curve }
     const own = await crypto.subtle.importKey('pkcs8', un(input.made.pkcs8), algorithm, true, ['deriveBits', 'deriveKey'])
     const other = await crypto.subtle.importKey('raw', un(input.made.raw), algorithm, true, [])
     const aes = await crypto.subtle.deriveKey({ ...algorithm, public: other }, own, { name: 'AES-GCM', length: 128 }, true, ['encrypt'])
     const bits = hex(await crypto.subtle.deriveBits({ ...algorithm, public: other }, own, input.bits))
     return bits === input.made.bits && hex(await crypto.subtle.exportKey('raw', aes)).slice(0, 16) === bits.slice(0, 16)`,
    fc.record({ curve: fc.constantFrom(...CURVES, 'X25519'), bits: fc.constantFrom(64, 128, 250, 256, null) }),
  ),
)

t.test('RSA signs, verifies, encrypts and decrypts', () =>
  exchanged(
    `const make = (name, usages) => crypto.subtle.generateKey({ name, modulusLength: input.size, publicExponent: new Uint8Array([1, 0, 1]), hash: input.hash }, true, usages)
     const algorithm = { name: input.name, saltLength: input.saltLength }
     const { publicKey, privateKey } = await make(input.name, ['sign', 'verify'])
     const oaep = await make('RSA-OAEP', ['encrypt', 'decrypt', 'wrapKey'])
     const inner = await crypto.subtle.importKey('raw', un(input.key), 'AES-CBC', true, ['encrypt'])
     return { spki: hex(await crypto.subtle.exportKey('spki', publicKey)), jwk: await crypto.subtle.exportKey('jwk', privateKey), signature: hex(await crypto.subtle.sign(algorithm, privateKey, un(input.data))),
       pkcs8: hex(await crypto.subtle.exportKey('pkcs8', oaep.privateKey)), sealed: hex(await crypto.subtle.encrypt({ name: 'RSA-OAEP', label: un(input.label) }, oaep.publicKey, un(input.key))),
       wrapped: hex(await crypto.subtle.wrapKey('raw', inner, oaep.publicKey, { name: 'RSA-OAEP' })) }`,
    `const { made } = input
     const algorithm = { name: input.name, hash: input.hash, saltLength: input.saltLength }
     const publicKey = await crypto.subtle.importKey('spki', un(made.spki), algorithm, true, ['verify'])
     const privateKey = await crypto.subtle.importKey('jwk', made.jwk, algorithm, true, ['sign'])
     const oaep = await crypto.subtle.importKey('pkcs8', un(made.pkcs8), { name: 'RSA-OAEP', hash: input.hash }, true, ['decrypt', 'unwrapKey'])
     const opened = await crypto.subtle.decrypt({ name: 'RSA-OAEP', label: un(input.label) }, oaep, un(made.sealed))
     const inner = await crypto.subtle.unwrapKey('raw', un(made.wrapped), oaep, 'RSA-OAEP', 'AES-CBC', true, ['encrypt'])
     const own = await crypto.subtle.sign(algorithm, privateKey, un(input.data))
     const sorted = (jwk) => JSON.stringify(Object.entries(jwk).sort())
     const results = [await crypto.subtle.verify(algorithm, publicKey, un(made.signature), un(input.data)), await crypto.subtle.verify(algorithm, publicKey, own, un(input.data)), hex(opened) === input.key, hex(await crypto.subtle.exportKey('raw', inner)) === input.key,
       sorted(await crypto.subtle.exportKey('jwk', privateKey)) === sorted(made.jwk), publicKey.algorithm.modulusLength === input.size, hex(publicKey.algorithm.publicExponent) === '010001']
     return results.every((result) => result === true) || results`,
    fc.record({
      name: fc.constantFrom('RSASSA-PKCS1-v1_5', 'RSA-PSS'),
      size: fc.constantFrom(1024, 1536),
      hash: fc.constantFrom('SHA-1', 'SHA-256'),
      saltLength: fc.integer({ min: 0, max: 60 }),
      key: hexBytes(16),
      label: hexBytes(0, 50),
      data: text,
    }),
    4,
  ),
)

/** Calls that Node.js refuses, each with the name of its error. */
const REFUSED = [
  `crypto.subtle.digest('MD5', new Uint8Array())`,
  `crypto.subtle.digest({}, new Uint8Array())`,
  `crypto.subtle.digest('SHA-256', 'text')`,
  `crypto.subtle.digest('SHA-256')`,
  `crypto.subtle.importKey('raw', new Uint8Array(15), 'AES-GCM', true, ['encrypt'])`,
  `crypto.subtle.importKey('raw', new Uint8Array(16), 'AES-GCM', true, ['sign'])`,
  `crypto.subtle.importKey('raw', new Uint8Array(16), 'AES-GCM', true, [])`,
  `crypto.subtle.importKey('raw', new Uint8Array(16), 'AES-GCM', true, ['fly'])`,
  `crypto.subtle.importKey('odd', new Uint8Array(16), 'AES-GCM', true, ['encrypt'])`,
  `crypto.subtle.importKey('raw', new Uint8Array(0), { name: 'HMAC', hash: 'SHA-256' }, true, ['sign'])`,
  `crypto.subtle.importKey('raw', new Uint8Array(4), { name: 'HMAC' }, true, ['sign'])`,
  `crypto.subtle.importKey('jwk', { kty: 'oct', k: 'AAAA', alg: 'HS384' }, { name: 'HMAC', hash: 'SHA-256' }, true, ['sign'])`,
  `crypto.subtle.importKey('jwk', { kty: 'oct', k: 'AAAA', use: 'enc' }, { name: 'HMAC', hash: 'SHA-256' }, true, ['sign'])`,
  `crypto.subtle.importKey('jwk', { kty: 'oct', k: 'AAAA', ext: false }, { name: 'HMAC', hash: 'SHA-256' }, true, ['sign'])`,
  `crypto.subtle.importKey('jwk', { kty: 'oct', k: 'AAAA', key_ops: ['verify'] }, { name: 'HMAC', hash: 'SHA-256' }, true, ['sign'])`,
  `crypto.subtle.importKey('jwk', { kty: 'oct' }, { name: 'HMAC', hash: 'SHA-256' }, true, ['sign'])`,
  `crypto.subtle.importKey('spki', new Uint8Array(40), { name: 'ECDSA', namedCurve: 'P-256' }, true, ['verify'])`,
  `crypto.subtle.importKey('raw', new Uint8Array(65).fill(4), { name: 'ECDSA', namedCurve: 'P-256' }, true, ['verify'])`,
  `crypto.subtle.importKey('raw', new Uint8Array(65).fill(4), { name: 'ECDSA', namedCurve: 'P-999' }, true, ['verify'])`,
  `crypto.subtle.importKey('jwk', { kty: 'EC', crv: 'P-256', x: 'AAAA', y: 'AAAA' }, { name: 'ECDSA', namedCurve: 'P-256' }, true, ['verify'])`,
  `crypto.subtle.importKey('pkcs8', new Uint8Array(400), { name: 'RSA-PSS', hash: 'SHA-256' }, true, ['sign'])`,
  `crypto.subtle.importKey('raw', new Uint8Array(400), { name: 'RSA-PSS', hash: 'SHA-256' }, true, ['verify'])`,
  `crypto.subtle.importKey('raw', new Uint8Array(31), 'Ed25519', true, ['verify'])`,
  `crypto.subtle.importKey('raw', new Uint8Array(5), 'PBKDF2', true, ['deriveBits'])`,
  `crypto.subtle.generateKey({ name: 'AES-GCM', length: 100 }, true, ['encrypt'])`,
  `crypto.subtle.generateKey({ name: 'AES-GCM', length: 128 }, true, [])`,
  `crypto.subtle.generateKey({ name: 'AES-GCM' }, true, ['encrypt'])`,
  `crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['encrypt'])`,
  `crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['verify'])`,
  `crypto.subtle.generateKey({ name: 'ECDSA' }, true, ['sign'])`,
  `crypto.subtle.generateKey({ name: 'PBKDF2' }, true, ['deriveBits'])`,
  `crypto.subtle.generateKey({ name: 'RSA-PSS', modulusLength: 1024, publicExponent: new Uint8Array([2]), hash: 'SHA-256' }, true, ['sign'])`,
  `crypto.subtle.generateKey({ name: 'RSA-PSS', modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]) }, true, ['sign'])`,
  `crypto.subtle.exportKey('raw', {})`,
  `crypto.subtle.encrypt({ name: 'AES-GCM', iv: new Uint8Array(12) }, await gcm(['decrypt']), new Uint8Array(1))`,
  `crypto.subtle.encrypt({ name: 'AES-CBC', iv: new Uint8Array(16) }, await gcm(['encrypt']), new Uint8Array(1))`,
  `crypto.subtle.encrypt({ name: 'AES-GCM' }, await gcm(['encrypt']), new Uint8Array(1))`,
  `crypto.subtle.encrypt({ name: 'AES-GCM', iv: new Uint8Array(12), tagLength: 5 }, await gcm(['encrypt']), new Uint8Array(1))`,
  `crypto.subtle.decrypt({ name: 'AES-GCM', iv: new Uint8Array(12) }, await gcm(['decrypt']), new Uint8Array(1))`,
  `crypto.subtle.exportKey('spki', await gcm(['decrypt']))`,
  `crypto.subtle.exportKey('raw', await gcm(['decrypt'], false))`,
  `crypto.subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-256', salt: new Uint8Array(1), iterations: 0 }, await password(), 128)`,
  `crypto.subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-256', salt: new Uint8Array(1), iterations: 1 }, await password(), null)`,
  `crypto.subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-256', salt: new Uint8Array(1), iterations: 1 }, await password(), 5)`,
  `crypto.subtle.deriveBits({ name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(1), info: new Uint8Array(1) }, await password(), 8)`,
  `new CryptoKey()`,
  `new SubtleCrypto()`,
  `CryptoKey.prototype.type`,
  `crypto.subtle.digest.call({}, 'SHA-256', new Uint8Array())`,
]

t.test('what is refused is refused by the same name', async (t) => {
  const prelude = `
    const gcm = (usages, extractable = true) => crypto.subtle.importKey('raw', new Uint8Array(16), 'AES-GCM', extractable, usages)
    const password = () => crypto.subtle.importKey('raw', new Uint8Array(16), 'PBKDF2', false, ['deriveBits'])
  `
  for (const call of REFUSED) {
    const code = `${prelude} return nameOf(async () => ${call})`
    const expected = await inNode(code)
    t.same(await evaluate(code), expected, call)
  }
})

t.test('the classes are those of the web', async (t) => {
  const code = `
    const key = await crypto.subtle.importKey('raw', new Uint8Array(16), 'AES-GCM', true, ['decrypt', 'encrypt'])
    return [typeof CryptoKey, typeof SubtleCrypto, key instanceof CryptoKey, crypto.subtle instanceof SubtleCrypto, String(key), String(crypto.subtle), key.usages === key.usages, key.algorithm === key.algorithm, Object.keys(key), CryptoKey.length,
      crypto.subtle === crypto.subtle, Object.getOwnPropertyNames(SubtleCrypto.prototype).filter((name) => ['digest', 'sign', 'verify', 'encrypt', 'decrypt', 'generateKey', 'deriveKey', 'deriveBits', 'importKey', 'exportKey', 'wrapKey', 'unwrapKey'].includes(name)).length]`
  t.same(await evaluate(code), await inNode(code))
})
