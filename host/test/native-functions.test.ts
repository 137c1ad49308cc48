/** Native functions as the addon gives them, with arguments that no code of ours would give. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { unpackUsage } from '@carpool/wire'
import t from 'tap'
import { inProcessHost } from './support/in-process-host.ts'
import { isolateWith } from './support/isolate.ts'
import { isolateWithNatives } from './support/natives.ts'
import { PRELUDE } from './support/native-work.ts'

/** The C library's own look at each block of memory that is freed. */
const CHECKS = ['/lib/x86_64-linux-gnu', '/lib/aarch64-linux-gnu', '/usr/lib64']
  .map((folder) => join(folder, 'libc_malloc_debug.so.0'))
  .find((file) => existsSync(file))

t.test('what a library asks for it may write to, whatever the size', { skip: CHECKS === undefined }, (t) => {
  const { status, signal, stdout, stderr } = spawnSync(
    process.execPath,
    ['--no-node-snapshot', join(import.meta.dirname, 'support/block-types.ts')],
    { encoding: 'utf8', env: { ...process.env, LD_PRELOAD: CHECKS, MALLOC_CHECK_: '3' } },
  )
  t.match({ status, signal, stdout }, { status: 0, signal: null, stdout: 'decompressed\n' }, stderr)
  t.end()
})

t.test('no text leaves an isolate that is longer than any that the runtime has to say', async (t) => {
  const { run, messages } = await isolateWith(t)
  t.equal(
    await run(`try { say('\\u20ac'.repeat(2 ** 20 + 1), '') } catch (error) { String(error) }`),
    'RangeError: The text is too long to be said.',
  )
  await run(`say('\\u20ac'.repeat(2 ** 20), '')`)
  t.same(messages(), [])
})

t.test('modes that take long for each byte take few bytes at once', (t) => {
  const { isolate, context } = isolateWithNatives()
  const slices = (size: number): unknown =>
    context.evalSync(
      `(() => {
        const names = ['des-ede3-cfb1', 'des-ede3-cfb8', 'camellia-256-cfb1', 'aes-256-cfb8', 'aes-256-cfb', 'aes-128-ctr', 'aes-256-gcm']
        return names.map((name) => {
          const [, keyBytes, ivBytes] = natives.cipherInfo(name)
          const cipher = natives.cipherNew(name, true, new Uint8Array(keyBytes).map((_, index) => index), new Uint8Array(ivBytes))
          const most = natives.cipherSlice(cipher)
          natives.cipherUpdate(cipher, new Uint8Array(${size}), 0, most, new Uint8Array(${size} + 100), 0)
          try { natives.cipherUpdate(cipher, new Uint8Array(${size}), 0, most + 1, new Uint8Array(${size} + 100), 0) } catch (error) { return most + error.message }
        }).join()
      })()`,
    )
  const all = [8, 8, 8, 8, 512, 512, 512].map((kilobytes) => `${kilobytes * 1024}That is too much at once.`)
  t.equal(slices(2 ** 20), all.join())
  isolate.dispose()
  t.end()
})

/** DER, as hexadecimal digits. */
function der(tag: string, ...parts: string[]): string {
  const content = parts.join('')
  const size = (content.length / 2).toString(16).padStart(4, '0')
  return `${tag}82${size}${content}`
}

/** A number of that many bytes. */
const number = (bytes: number): string => der('02', `00ff${'ab'.repeat(bytes - 2)}fd`)
const RSA = '300d06092a864886f70d0101010500'
const EXPONENT = '0203010001'

t.test('RSA keys whose numbers would take long to compute with are none', (t) => {
  const { isolate, context } = isolateWithNatives()
  const isRead = (hex: string, isPrivate: boolean): unknown =>
    context.evalSync(`natives.keyRead(Uint8Array.fromHex('${hex}'), ${isPrivate}) !== undefined`)
  /** From the size of each number, in bytes. */
  const isPrivateKey = (n: number, d: number, ...others: number[]): unknown =>
    isRead(der('30', '020100', RSA, der('04', der('30', '020100', number(n), EXPONENT, number(d), ...others.map(number)))), true)
  t.equal(isPrivateKey(256, 256, 128, 128, 128, 128, 128), true)
  t.equal(isPrivateKey(512, 512, 256, 256, 256, 256, 256), true)
  t.equal(isPrivateKey(513, 513, 256, 256, 256, 256, 256), false)
  t.equal(isPrivateKey(1024, 1024, 512, 512, 512, 512, 512), false)
  for (let index = 0; index < 5; index++) {
    t.equal(isPrivateKey(256, 256, ...[128, 128, 128, 128, 128].with(index, 130)), false)
    t.equal(isPrivateKey(256, 256, ...[128, 128, 128, 128, 128].with(index, 256)), false)
  }
  t.equal(isPrivateKey(256, 257, 128, 128, 128, 128, 128), false)
  // As many as verify signatures.
  t.equal(isRead(der('30', RSA, der('03', '00', der('30', number(1024), EXPONENT))), false), true)
  t.equal(isRead(der('30', RSA, der('03', '00', der('30', number(1025), EXPONENT))), false), false)
  isolate.dispose()
  t.end()
})

t.test('what libraries hold is seen as held, and as a peak', async (t) => {
  const host = await inProcessHost()
  const scrypt = `carpoolSupport_.module('crypto', { Buffer: PLAIN }).scryptSync('password', 'salt', 32, { N: 2 ** 15, r: 8, p: 1, maxmem: 1e9 })`
  host.load('scrypt', `${PRELUDE} ${scrypt}; return new Response()`, { memoryMb: 128, cpuMs: 10_000 })
  host.load('little', `${PRELUDE} return new Response()`, { memoryMb: 128 })
  const peakMb = async (revision: string): Promise<number> => {
    const { message } = await host.endOf(host.invoke(revision))
    return unpackUsage((message as unknown as { usage: unknown }).usage).memoryPeakKb / 1024
  }
  const [muchMb, littleMb] = [await peakMb('scrypt'), await peakMb('little')]
  t.ok(muchMb > 32 && muchMb < 64, `${muchMb} MiB`)
  t.ok(littleMb < 16, `${littleMb} MiB`)
})
