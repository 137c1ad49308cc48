import t from 'tap'
import { serveExamples } from './support/serve-examples.ts'

t.test('ten calls of seed at once share one instance', async (t) => {
  const url = await serveExamples(t, ['seed'])
  const answers = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const response = await fetch(`${url}/seed/`)
      t.equal(response.status, 200)
      t.equal(response.headers.get('content-type'), 'text/plain')
      return (await response.text()).split(',')
    }),
  )
  const instances = new Set(answers.map(([instanceId]) => instanceId))
  t.equal(instances.size, 1)
  t.match([...instances][0], /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  const ids = answers.map(([, invocationId]) => Number(invocationId)).toSorted((a, b) => a - b)
  t.strictSame(ids, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  for (const [, , ...rest] of answers) t.strictSame(rest, ['10000000', '49999995000000', 'Hello World'])
})
