import t from 'tap'
import { bundleFunction } from '../src/index.ts'
import { Guest } from '../../runtime/test/support/guest.ts'

const SOURCE = `
  import { resolveObjectURL } from 'node:buffer'
  export default {
    async fetch() {
      const url = URL.createObjectURL(new Blob(['text'], { type: 'a/b' }))
      const { type, size } = resolveObjectURL(url)
      const text = await resolveObjectURL(url).text()
      URL.revokeObjectURL(url)
      return Response.json([type, size, text, resolveObjectURL(url) === undefined, resolveObjectURL('nothing') === undefined])
    },
  }`

t.test('node:buffer finds the Blob that a URL was made of', async (t) => {
  const { code } = await bundleFunction(t.testdir({ 'index.mjs': SOURCE }))
  const guest = new Guest().load(`(${code.trim().replace(/;$/, '')})(carpoolSupport_)`)
  t.teardown(() => guest.isolate.dispose())
  t.same(JSON.parse(guest.call().body), ['a/b', 4, 'text', true, true])
})
