/** `node:crypto` of a function beside that of Node.js. */
import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { runs } from '../../../test/support/form.ts'
import { exchanged, hexBytes, inGuest, inNode, same } from './support/beside-node.ts'

const { evaluate, guest } = inGuest()
t.teardown(() => guest.isolate.dispose())

const text = hexBytes(0, 300)
const digest = fc.constantFrom('md5', 'sha1', 'SHA256', 'sha384', 'sha512', 'RSA-SHA256', 'sha3-256', 'ripemd160', 'sha512-256')

t.test('digests and HMAC', () =>
  same(
    evaluate,
    `const data = Buffer.from(input.data, 'hex')
     const hash = crypto.createHash(input.digest).update(data).update('é').update(input.data, 'hex')
     const copy = hash.copy()
     const again = (run) => { try { return run() } catch (error) { return error.code } }
     const hmac = crypto.createHmac(input.digest, Buffer.from(input.key, 'hex')).update(data)
     return [hash.digest('hex'), copy.update('more').digest().toString('base64'), again(() => hash.digest()), again(() => hash.update('')), hmac.digest('base64url'), hmac.digest('hex'),
       crypto.hash(input.digest, data), crypto.createHash('shake256', { outputLength: 40 }).update(data).digest('hex'), crypto.createHash('shake128').update(data).digest('hex')]`,
    fc.record({ digest, data: text, key: hexBytes(0, 200) }),
  ),
)

t.test('derivations', () =>
  same(
    evaluate,
    `const [key, salt] = [Buffer.from(input.key, 'hex'), Buffer.from(input.salt, 'hex')]
     const later = (run) => new Promise((resolve) => run((error, value) => resolve(error?.code ?? Buffer.from(value).toString('hex'))))
     const options = { N: 2 ** input.cost, r: input.r, p: input.p }
     return [crypto.pbkdf2Sync(key, salt, input.count, input.size, input.digest).toString('hex'), await later((done) => crypto.pbkdf2(key, salt, input.count, input.size, input.digest, done)),
       Buffer.from(crypto.hkdfSync(input.digest, key, salt, 'info', input.size)).toString('hex'), await later((done) => crypto.hkdf(input.digest, key, salt, 'info', input.size, done)),
       crypto.scryptSync(key, salt, input.size, options).toString('hex'), await later((done) => crypto.scrypt(key, salt, input.size, options, done))]`,
    fc.record({
      key: hexBytes(1, 150),
      salt: hexBytes(0, 100),
      count: fc.integer({ min: 1, max: 3000 }),
      size: fc.integer({ min: 1, max: 100 }),
      digest: fc.constantFrom('sha1', 'sha256', 'sha512'),
      cost: fc.integer({ min: 1, max: 10 }),
      r: fc.integer({ min: 1, max: 9 }),
      p: fc.integer({ min: 1, max: 3 }),
    }),
    25,
  ),
)

t.test('ciphers', () =>
  same(
    evaluate,
    `const [key, iv, data, aad] = [input.key, input.iv, input.data, input.aad].map((part) => Buffer.from(part, 'hex'))
     const { keyLength, ivLength = 0, mode } = crypto.getCipherInfo(input.name)
     const isTagged = mode === 'gcm' || mode === 'ocb' || input.name.includes('poly')
     const options = isTagged ? { authTagLength: 16 } : undefined
     const start = ivLength === 0 ? null : iv.subarray(0, ivLength)
     const cipher = crypto.createCipheriv(input.name, key.subarray(0, keyLength), start, options)
     if (isTagged) cipher.setAAD(aad)
     const sealed = cipher.update(data, undefined, 'base64') + cipher.update(data.toString('hex'), 'hex', 'base64') + cipher.final('base64')
     const decipher = crypto.createDecipheriv(input.name, key.subarray(0, keyLength), start, options)
     if (isTagged) decipher.setAAD(aad).setAuthTag(cipher.getAuthTag())
     const opened = decipher.update(sealed, 'base64', 'utf8') + decipher.final('utf8')
     const wrong = crypto.createDecipheriv(input.name, key.subarray(0, keyLength), start, options)
     if (isTagged) wrong.setAAD(aad).setAuthTag(Buffer.alloc(16, 7))
     let failure = 'none'
     try { wrong.update('AAAA' + sealed, 'base64'); wrong.final() } catch (error) { failure = [error.message, error.code] }
     return [sealed, opened, isTagged && cipher.getAuthTag().toString('hex'), isTagged ? failure : '', keyLength, ivLength, mode]`,
    fc.record({
      name: fc.constantFrom(
        'aes-128-cbc', 'AES-256-CBC', 'aes-192-ctr', 'aes-256-gcm', 'aes-128-gcm', 'aes-256-ecb', 'aes-256-ocb', 'aes-128-cfb8', 'chacha20-poly1305',
        'des-ede3-cbc',
      ), // biome-ignore format: names
      key: hexBytes(32),
      iv: hexBytes(16),
      data: text,
      aad: hexBytes(0, 40),
    }),
    80,
  ),
)

t.test('what has no tag, or one of another length, is never taken for authentic', () =>
  same(
    evaluate,
    `const [key, iv, data] = [Buffer.alloc(Number(input.name.match(/128/) ? 16 : 32), 1), Buffer.alloc(12, 2), Buffer.from(input.data, 'hex')]
     const attempt = (run) => { try { return run() } catch (error) { return [error.code, error.message] } }
     const options = input.length === 0 ? undefined : { authTagLength: input.length }
     const seal = () => { const cipher = crypto.createCipheriv(input.name, key, iv, options); const text = cipher.update(data, undefined, 'hex') + cipher.final('hex'); return [text, cipher.getAuthTag().toString('hex')] }
     const open = (tag) => { const decipher = crypto.createDecipheriv(input.name, key, iv, options); if (tag !== undefined) decipher.setAuthTag(tag); return decipher.update(sealed[0], 'hex', 'hex') + decipher.final('hex') }
     const sealed = attempt(seal)
     const tag = Buffer.from(sealed[1], 'hex')
     // Without a tag Node may compare with zeroes, which one of a byte is at times.
     const isTakenByNode = (input.name.includes('poly') && options === undefined) || /^(00)+$/.test(sealed[1])
     return [sealed, isTakenByNode || attempt(() => open()), attempt(() => open(tag)), ...[1, 4, 8, 12, 15].map((length) => attempt(() => open(tag.subarray(0, length)))),
       attempt(() => open(Buffer.alloc(17))), attempt(() => open(Buffer.alloc(input.length || 16))), attempt(() => { const decipher = crypto.createDecipheriv(input.name, key, iv, options); decipher.update(sealed[0], 'hex'); decipher.setAuthTag(tag); return decipher.final('hex') }),
       attempt(() => { const decipher = crypto.createDecipheriv(input.name, key, iv, options); decipher.setAuthTag(tag); decipher.setAuthTag(tag) })]`,
    fc.record({
      name: fc.constantFrom('chacha20-poly1305', 'aes-256-gcm', 'aes-128-gcm', 'aes-256-ocb'),
      length: fc.constantFrom(0, 1, 4, 8, 12, 15, 16, 17),
      data: hexBytes(0, 100),
    }),
    120,
  ),
)

t.test('ChaCha20-Poly1305 without a tag is not authentic, though Node takes it for that', async (t) => {
  const code = `const [key, iv] = [Buffer.alloc(32), Buffer.alloc(12)]
    const results = []
    for (const options of [undefined, {}, { authTagLength: 16 }, { authTagLength: 4 }]) {
      const decipher = crypto.createDecipheriv('chacha20-poly1305', key, iv, options)
      decipher.setAAD(Buffer.alloc(3))
      decipher.update('forged')
      try { results.push(decipher.final().length) } catch (error) { results.push(error.message) }
    }
    return results`
  t.same(await evaluate(code), Array<string>(4).fill('Unsupported state or unable to authenticate data'))
})

t.test('text of ciphers is that of Node, however it is cut', () =>
  same(
    evaluate,
    `const [key, iv] = [Buffer.alloc(16, 1), Buffer.alloc(16, 2)]
     const cipher = crypto.createCipheriv('aes-128-ctr', key, iv)
     const sealed = Buffer.concat([cipher.update(Buffer.from(input.text, 'utf8')), cipher.update(Buffer.from(input.text, 'utf16le')), cipher.final()])
     const decipher = crypto.createDecipheriv('aes-128-ctr', key, iv)
     const pieces = []
     for (let at = 0; at < sealed.length; at += input.step) pieces.push(decipher.update(sealed.subarray(at, at + input.step), undefined, input.encodings[at % 2]))
     pieces.push(decipher.final(input.encodings[1]))
     let change = 'none'
     try { const other = crypto.createDecipheriv('aes-128-ctr', key, iv); other.update(sealed, undefined, 'utf8'); other.update(sealed, undefined, 'hex') } catch (error) { change = error.code }
     return [pieces, change]`,
    fc.record({
      text: fc.string({ unit: fc.constantFrom('\ufeff', 'a', 'é', '漢', '\u{1f600}'), maxLength: 30 }),
      step: fc.integer({ min: 1, max: 7 }),
      encodings: fc.constantFrom(['utf8', 'utf-8'], ['UTF8', 'utf8'], ['ucs2', 'utf16le'], ['utf16le', 'UCS-2'], ['base64', 'BASE64'], ['base64url', 'base64url'], ['latin1', 'binary'], ['hex', 'HEX'], ['ascii', 'ascii']), // biome-ignore format: pairs
    }),
    runs(100),
  ),
)

const FORMS = [
  `crypto.generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey.export({ type: 'pkcs1', format: 'FORMAT' })`,
  `crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'sec1', format: 'FORMAT' })`,
  `crypto.generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'FORMAT' })`,
  `crypto.generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'FORMAT', cipher: 'aes-128-cbc', passphrase: 'top' })`,
  `crypto.generateKeyPairSync('rsa-pss', { modulusLength: 1024, hashAlgorithm: 'sha256' }).publicKey.export({ type: 'spki', format: 'FORMAT' })`,
]
/** As OpenSSL writes it, which the test has no other way to make: a key of old style, and a certificate. */
const OTHERS = [
  `-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\n${'QUJD'.repeat(16)}\n-----END RSA PRIVATE KEY-----\n`,
  `-----BEGIN RSA PRIVATE KEY-----\nDEK-Info: AES-128-CBC,nothing\n\n${'QUJD'.repeat(16)}\n-----END RSA PRIVATE KEY-----\n`,
]
/** No more of one than where its key is. */
const CERTIFICATE = '30143012a003020102020101' + '3000'.repeat(5)

/** The DER without one element and what follows it, for each. */
function derWithout(der: Buffer): Buffer[] {
  const content = der[1]! < 0x80 ? der.subarray(2) : der.subarray(2 + (der[1]! & 0x7f))
  const elements: Buffer[] = []
  for (let at = 0; at < content.length; ) {
    const first = content[at + 1]!
    const size = first < 0x80 ? 2 + first : 2 + (first & 0x7f) + content.readUIntBE(at + 2, first & 0x7f)
    elements.push(content.subarray(at, at + size))
    at += size
  }
  const written = (parts: readonly Buffer[]): Buffer => {
    const whole = Buffer.concat(parts)
    const head = whole.length < 0x80 ? [whole.length] : [0x82, whole.length >> 8, whole.length & 0xff]
    return Buffer.concat([Buffer.from([der[0]!, ...head]), whole])
  }
  return elements.flatMap((element, index) => [
    written(elements.slice(0, index)),
    ...((element[0]! & 0x20) === 0 ? [] : derWithout(element)).map((less) => written(elements.toSpliced(index, 1, less))),
  ])
}

t.test('what is broken of a key is refused by an error with a code', async (t) => {
  const forms: string[] = []
  for (const form of FORMS) {
    forms.push((await inNode(`return ${form.replace('FORMAT', 'pem')}`)) as string)
  }
  forms.push(...OTHERS)
  const der = forms.slice(0, FORMS.length).map((pem) => pem.replaceAll(/-----.*?-----|\s/g, ''))
  // A whole form that lacks a part, wherever that is.
  const lacking = (label: string, bytes: Buffer): string[] =>
    derWithout(bytes).map((part) => `-----BEGIN ${label}-----\n${part.toString('base64')}\n-----END ${label}-----\n`)
  for (const [index, label] of [
    'RSA PRIVATE KEY',
    'EC PRIVATE KEY',
    'PRIVATE KEY',
    'ENCRYPTED PRIVATE KEY',
    'PUBLIC KEY',
  ].entries()) {
    forms.push(...lacking(label, Buffer.from(der[index]!, 'base64')))
  }
  forms.push(...lacking('CERTIFICATE', Buffer.from(CERTIFICATE, 'hex')))
  const types = ['pkcs1', 'sec1', 'pkcs8', 'pkcs8', 'spki']
  const code = `const codes = []
    const attempt = (input) => { for (const make of [crypto.createPrivateKey, crypto.createPublicKey]) { try { const key = make(input); codes.push(typeof key.asymmetricKeyDetails) } catch (error) { codes.push(/^(Type|Range)?Error$/.test(error.name) ? error.code : String(error.stack)) } } }
    for (const change of input.changes) {
      const bytes = Buffer.from(input.text, input.type === undefined ? 'latin1' : 'base64')
      if (change.bit >= 0) bytes[Math.floor(change.at * bytes.length)] ^= 1 << change.bit
      const part = change.bit < 0 ? bytes.subarray(0, Math.floor(change.at * bytes.length)) : bytes
      attempt(input.type === undefined ? { key: part.toString('latin1'), passphrase: 'top' } : { key: part, format: 'der', type: input.type, passphrase: 'top' })
      if (input.type === undefined && change.bit < 0) attempt({ key: part.toString('latin1') + '\\n' + input.text.split('\\n').at(-2) + '\\n', passphrase: 'top' })
    }
    return codes`
  await fc.assert(
    fc.asyncProperty(
      fc.nat({ max: forms.length + der.length - 1 }),
      fc.array(fc.record({ at: fc.double({ min: 0, max: 0.999, noNaN: true }), bit: fc.integer({ min: -1, max: 7 }) }), {
        maxLength: 20,
      }),
      async (index, some) => {
        // As it is, too.
        const changes = [{ at: 1, bit: -1 }, ...some]
        const isText = index < forms.length
        const text = isText ? forms[index]! : der[index - forms.length]!
        const type = isText ? undefined : types[index - forms.length]
        const codes = (await evaluate(code, { text, type, changes })) as unknown[]
        t.same(codes.filter((one) => one !== 'object' && !/^ERR_\w+$/.test(String(one))), []) // biome-ignore format: one line
      },
    ),
    { numRuns: runs(400), endOnFailure: true },
  )
})

const KINDS = [
  `crypto.generateKeyPairSync('rsa', { modulusLength: 1024 })`,
  `crypto.generateKeyPairSync('rsa-pss', { modulusLength: 1024 })`,
  `crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' })`,
  `crypto.generateKeyPairSync('ec', { namedCurve: 'secp521r1' })`,
  `crypto.generateKeyPairSync('ec', { namedCurve: 'secp256k1' })`,
  `crypto.generateKeyPairSync('ed25519')`,
  `crypto.generateKeyPairSync('ed448')`,
]

t.test('keys in all forms, and signatures', () =>
  Promise.all(
    KINDS.map((make) =>
      exchanged(
        evaluate,
        [
          `const { publicKey, privateKey } = ${make}
           const own = privateKey.asymmetricKeyType
           const pem = (key, type, more) => key.export({ type, format: 'pem', ...more })
           const forms = [pem(privateKey, 'pkcs8'), pem(privateKey, 'pkcs8', { cipher: 'aes-256-cbc', passphrase: 'top' }), ...(own === 'rsa' ? [pem(privateKey, 'pkcs1')] : []), ...(own === 'ec' ? [pem(privateKey, 'sec1')] : [])]
           const open = [pem(publicKey, 'spki'), ...(own === 'rsa' ? [pem(publicKey, 'pkcs1')] : [])]
           const algorithm = own.startsWith('ed') ? null : 'sha256'
           const data = Buffer.from(input.data, 'hex')
           const signatures = [crypto.sign(algorithm, data, privateKey)]
           if (algorithm !== null) signatures.push(crypto.createSign('RSA-SHA256').update(data).sign(privateKey))
           return { forms, open, own, der: privateKey.export({ type: 'pkcs8', format: 'der' }).toString('hex'), jwk: own === 'rsa-pss' ? null : privateKey.export({ format: 'jwk' }), details: { ...privateKey.asymmetricKeyDetails, publicExponent: 0 },
             plain: own === 'ec' ? crypto.sign('sha512', data, { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('hex') : null, signatures: signatures.map((one) => one.toString('hex')) }`,
          `const { made } = input
           const data = Buffer.from(input.data, 'hex')
           const algorithm = made.own.startsWith('ed') ? null : 'sha256'
           const keys = made.forms.map((key) => crypto.createPrivateKey({ key, passphrase: 'top' }))
           keys.push(crypto.createPrivateKey({ key: Buffer.from(made.der, 'hex'), format: 'der', type: 'pkcs8' }))
           if (made.jwk !== null) keys.push(crypto.createPrivateKey({ key: made.jwk, format: 'jwk' }))
           const open = [...made.open.map((key) => crypto.createPublicKey(key)), crypto.createPublicKey(keys[0])]
           const results = keys.map((key) => key.equals(keys[0]) && key.type === 'private' && key.asymmetricKeyType === made.own)
           results.push(JSON.stringify({ ...keys[0].asymmetricKeyDetails, publicExponent: 0 }) === JSON.stringify(made.details))
           for (const key of open) {
             results.push(key.equals(open[0]), key.type === 'public')
             for (const one of made.signatures) {
               const signature = Buffer.from(one, 'hex')
               results.push(crypto.verify(algorithm, data, key, signature), !crypto.verify(algorithm, Buffer.from(input.data + '00', 'hex'), key, signature))
             }
             results.push(crypto.verify(algorithm, data, key, crypto.sign(algorithm, data, keys.at(-1))))
             if (made.plain !== null) results.push(crypto.verify('sha512', data, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(made.plain, 'hex')))
             if (made.own === 'rsa') results.push(crypto.createVerify('sha256').update(data).verify({ key, padding: 6, saltLength: 20 }, crypto.createSign('sha256').update(data).sign({ key: keys[0], padding: 6, saltLength: 20 }, 'hex'), 'hex'))
           }
           return results.every((result) => result === true) || results`,
        ],
        fc.record({ data: text }),
        2,
      ),
    ),
  ),
)

t.test('RSA encrypts and decrypts', () =>
  exchanged(
    evaluate,
    [
      `const { publicKey, privateKey } = crypto.generateKeyPairSync('rsa', { modulusLength: 1024, publicKeyEncoding: { type: 'spki', format: 'pem' }, privateKeyEncoding: { type: 'pkcs1', format: 'pem' } })
       const data = Buffer.from(input.data, 'hex')
       return { publicKey, privateKey, texts: [crypto.publicEncrypt(publicKey, data), crypto.publicEncrypt({ key: publicKey, oaepHash: 'sha256', oaepLabel: Buffer.from('label') }, data), crypto.publicEncrypt({ key: publicKey, padding: 1 }, data), crypto.privateEncrypt(privateKey, data)].map((one) => one.toString('hex')) }`,
      `const { publicKey, privateKey, texts } = input.made
       const [one, two, three, four] = texts.map((text) => Buffer.from(text, 'hex'))
       return [crypto.privateDecrypt(privateKey, one), crypto.privateDecrypt({ key: privateKey, oaepHash: 'sha256', oaepLabel: Buffer.from('label') }, two), crypto.privateDecrypt({ key: privateKey, padding: 1 }, three), crypto.publicDecrypt(publicKey, four)].every((text) => text.toString('hex') === input.data)`,
    ],
    fc.record({ data: hexBytes(1, 40) }),
    3,
  ),
)

t.test('shared secrets', () =>
  exchanged(
    evaluate,
    [
      `const ecdh = crypto.createECDH(input.curve)
       ecdh.generateKeys()
       const pair = crypto.generateKeyPairSync('x25519')
       return { own: ecdh.getPrivateKey('hex'), open: ecdh.getPublicKey('hex', 'compressed'), whole: ecdh.getPublicKey('hex'), x: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }), y: pair.publicKey.export({ type: 'spki', format: 'pem' }) }`,
      `const { made } = input
       const [one, other] = [crypto.createECDH(input.curve), crypto.createECDH(input.curve)]
       one.setPrivateKey(made.own, 'hex')
       const point = other.generateKeys()
       const pair = crypto.generateKeyPairSync('x25519')
       return one.getPublicKey('hex') === made.whole && one.computeSecret(point).equals(other.computeSecret(made.open, 'hex')) &&
         crypto.diffieHellman({ privateKey: pair.privateKey, publicKey: crypto.createPublicKey(made.y) }).equals(crypto.diffieHellman({ privateKey: crypto.createPrivateKey(made.x), publicKey: pair.publicKey }))`,
    ],
    fc.record({ curve: fc.constantFrom('prime256v1', 'secp384r1', 'secp521r1', 'secp256k1') }),
  ),
)

/** What Node.js refuses, each with the code of its error. */
const REFUSED = [
  `crypto.createHmac('nope', 'key')`,
  `crypto.createHash(1)`,
  `crypto.createHash('sha256').update(1)`,
  `crypto.createCipheriv('nope', '', '')`,
  `crypto.createCipheriv('aes-128-cbc', Buffer.alloc(5), Buffer.alloc(16))`,
  `crypto.createCipheriv('aes-128-cbc', Buffer.alloc(16), Buffer.alloc(5))`,
  `crypto.createCipheriv('aes-128-gcm', Buffer.alloc(16), Buffer.alloc(12)).getAuthTag()`,
  `crypto.createDecipheriv('aes-128-gcm', Buffer.alloc(16), Buffer.alloc(12)).setAuthTag(Buffer.alloc(5))`,
  `crypto.createDecipheriv('aes-128-cbc', Buffer.alloc(16), Buffer.alloc(16)).final()`,
  `crypto.pbkdf2Sync('a', 'b', 0, 1, 'sha256')`,
  `crypto.pbkdf2Sync('a', 'b', 1, 1, 'nope')`,
  `crypto.pbkdf2Sync('a', 'b', 1, -1, 'sha256')`,
  `crypto.scryptSync('a', 'b', 8, { N: 3 })`,
  `crypto.scryptSync('a', 'b', 8, { N: 2 ** 20 })`,
  `crypto.hkdfSync('sha256', 'a', 'b', 'c', 1e6)`,
  `crypto.timingSafeEqual(Buffer.alloc(1), Buffer.alloc(2))`,
  `crypto.timingSafeEqual('a', 'a')`,
  `crypto.randomBytes(-1)`,
  `crypto.randomBytes('1')`,
  `crypto.randomInt(5, 5)`,
  `crypto.randomInt(0, 2 ** 50)`,
  `crypto.randomInt('1')`,
  `crypto.createPrivateKey('nope')`,
  `crypto.createPrivateKey('-----BEGIN PRIVATE KEY-----\\nMIIB\\n-----END PRIVATE KEY-----')`,
  `crypto.createSecretKey(1)`,
  `crypto.generateKeyPairSync('nope')`,
  `crypto.generateKeyPairSync('rsa', {})`,
  `crypto.createECDH('nope')`,
  `crypto.sign('nope', Buffer.alloc(1), crypto.generateKeyPairSync('ed25519').privateKey)`,
  `crypto.sign('sha256', Buffer.alloc(1), crypto.generateKeyPairSync('ed25519').publicKey)`,
  `crypto.createSign('sha256').sign()`,
  `crypto.generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc' })`,
  `crypto.generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 1, passphrase: 'a' })`,
  `crypto.generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem', passphrase: 'a' })`,
  `crypto.createCipheriv('aes-128-ctr', Buffer.alloc(16), Buffer.alloc(16)).update('a', 'utf8', 'nope')`,
]

t.test('what is refused is refused by the same code', async (t) => {
  for (const call of REFUSED) {
    const code = `try { ${call}; return 'none' } catch (error) { return [error.name, error.code] }`
    t.same(await evaluate(code), await inNode(code), call)
  }
})

t.test('random numbers are within their range, and all are drawn', async (t) => {
  const code = `const seen = new Set(Array.from({ length: 400 }, () => crypto.randomInt(-3, 4)))
    const later = await new Promise((resolve) => crypto.randomBytes(9, (error, bytes) => resolve(bytes.length)))
    return [[...seen].sort((a, b) => a - b), crypto.randomBytes(1e6).length, crypto.randomBytes(1e6).subarray(-32).some((byte) => byte > 0), later, crypto.randomFillSync(Buffer.alloc(40)).some((byte) => byte > 0), crypto.randomUUID().length]`
  t.same(await evaluate(code), [[-3, -2, -1, 0, 1, 2, 3], 1_000_000, true, 9, true, 36])
})

t.test('KeyObjects and CryptoKeys turn into each other', async (t) => {
  const code = `const secret = crypto.createSecretKey(Buffer.from('00112233445566778899aabbccddeeff', 'hex'))
    const key = await secret.toCryptoKey('AES-GCM', true, ['encrypt'])
    const { privateKey } = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign'])
    return [key.type, crypto.KeyObject.from(key).equals(secret), secret.symmetricKeySize, secret.export({ format: 'jwk' }), crypto.KeyObject.from(privateKey).asymmetricKeyType, crypto.createHmac('sha1', secret).digest('hex'), crypto.webcrypto.subtle === crypto.subtle]`
  t.same(await evaluate(code), await inNode(code))
})

t.test('a private RSA key that is too long to be imported is called that', async (t) => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 4104 })
  const pem = (type: 'pkcs1' | 'pkcs8'): string => privateKey.export({ type, format: 'pem' })
  const pkcs8 = privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64')
  const input = { texts: [pem('pkcs1'), pem('pkcs8')], jwk: privateKey.export({ format: 'jwk' }), pkcs8 }
  const code = `
    const told = async (use) => { try { await use(); return 'none' } catch (error) { return [error.name, error.message] } }
    const rsa = { name: 'RSA-PSS', hash: 'SHA-256' }
    return Promise.all([
      ...input.texts.map((text) => told(() => crypto.createPrivateKey(text))),
      told(() => crypto.createPrivateKey({ key: input.jwk, format: 'jwk' })),
      told(() => crypto.subtle.importKey('pkcs8', Buffer.from(input.pkcs8, 'base64'), rsa, true, ['sign'])),
    ])`
  const refusal = ['RangeError', 'A private RSA key that is imported has 4096 bits at most; this one has 4104.']
  t.same(await evaluate(code, input), [refusal, refusal, refusal, refusal])
  const text = publicKey.export({ type: 'spki', format: 'pem' })
  t.equal(await evaluate(`return crypto.createPublicKey(input).asymmetricKeyDetails.modulusLength`, text), 4104)
})

t.test('node:tls decrypts a key that has a passphrase: the host takes none that is encrypted', async (t) => {
  for (const { privateKey } of [
    generateKeyPairSync('rsa', { modulusLength: 2048 }),
    generateKeyPairSync('ec', { namedCurve: 'P-256' }),
    generateKeyPairSync('ed25519'),
  ]) {
    const plain = privateKey.export({ type: 'pkcs8', format: 'pem' })
    const sealed = privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'top' })
    const made = await evaluate(
      `const keyOf = (options) => tls.createSecureContext(options).key
       const wrong = (() => { try { return keyOf({ key: input.sealed, passphrase: 'other' }) } catch (error) { return error.code } })()
       return [keyOf({ key: input.sealed, passphrase: 'top' }), keyOf({ key: [{ pem: Buffer.from(input.sealed), passphrase: 'top' }] }),
         keyOf({ key: input.plain, passphrase: 'top' }), keyOf({ key: input.sealed }), wrong]`,
      { sealed, plain },
    )
    t.same(made, [plain, plain, plain, sealed, 'ERR_OSSL_BAD_DECRYPT'])
  }
})
