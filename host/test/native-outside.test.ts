/** What isolates take outside of their heaps counts until it is given back, whoever does that, and whatever else is freed. */
import t from 'tap'
import { isolateWith } from './support/isolate.ts'

const MEBIBYTE = 1024 * 1024

/** Some of what is freed in these was never counted: isolated-vm has taken it, or V8 on its own threads. */
const FREES = {
  'buffers': 'for (let i = 0; i < 3000; i++) new Uint8Array(10_000).fill(1); 1',
  'what V8 compiles with': `
    const lines = Array.from({ length: 150 }, (_, j) => 'n = (n * ' + (j + 3) + ' + a[' + (j & 7) + ']) | 0; if (n > ' + j + ') n ^= a[n & 7];')
    for (let round = 0; round < 10; round++) {
      const one = new Function('a', 'let n = ' + Math.random() + ';' + lines.join('') + 'return n')
      for (let i = 0; i < 6000; i++) one([1, 2, 3, 4, 5, 6, 7, 8])
    } 1`,
}
for (const [title, code] of Object.entries(FREES)) {
  t.test(`what is kept counts as before, whatever else is freed: ${title}`, async (t) => {
    const rig = await isolateWith(t, 256)
    const heldMb = async (): Promise<number> => {
      await rig.isolate.collectGarbage()
      // It is looked at when the isolate takes more.
      await rig.run(`globalThis.text = new Array(2 ** 22).fill(0.5); 1`)
      return rig.isolate.heldBytes / MEBIBYTE
    }
    await rig.run('globalThis.kept = []; for (let i = 0; i < 6e5; i++) kept.push(new Temporal.PlainDate(2020, 1, 1)); 1')
    await heldMb()
    const beforeMb = await heldMb()
    for (let round = 0; round < 2; round++) t.equal(await rig.run(code), '1')
    const afterMb = await heldMb()
    t.ok(Math.abs(afterMb - beforeMb) < 2, `${beforeMb} MiB before, ${afterMb} MiB after`)
  })
}

t.test('nobody hides what they keep behind buffers that they drop', async (t) => {
  const rig = await isolateWith(t, 8)
  await rig.run(`globalThis.kept = []; globalThis.cut = new Intl.Segmenter('en').segment('x'.repeat(1e5)); 1`)
  const fill = `for (let i = 0; i < 50; i++) kept.push(cut[Symbol.iterator]()); for (let i = 0; i < 50; i++) new Uint8Array(1e6).fill(1); kept.length`
  let count = 0
  for (let told: string | undefined; count < 1500 && (told = await rig.run(fill)) !== undefined; ) count = Number(told)
  t.ok(rig.isolate.disposed, `${count} were kept, of 200 KB each`)
})
