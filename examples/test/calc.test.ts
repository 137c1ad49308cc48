import t, { type Test } from 'tap'
import { serveExamples } from './support/serve-examples.ts'

interface Work {
  readonly calculations: number
  readonly multiplications: number
  readonly divisions: number
  readonly sum: number
}

t.test('calc', async (t) => {
  const url = await serveExamples(t, ['calc'])
  const calculate = (query: string) => fetch(`${url}/calc/?${query}`)

  const levels = [
    { calculations: 0, array: 0, calls: 0 },
    { calculations: 2_000, array: 100, calls: 20 },
    { calculations: 20_000, array: 1_000, calls: 20 },
    { calculations: 200_000, array: 10_000, calls: 20 },
  ]
  for (const [index, level] of levels.entries()) {
    t.test(`level ${index + 1} does its number of calculations`, async (t) => {
      const response = await calculate(`level=${index + 1}`)
      t.equal(response.status, 200)
      checkWork(t, (await response.json()) as Work, level)
    })
  }

  t.test('parameters replace those of the level', async (t) => {
    const response = await calculate('level=2&calculations=1001&calls=7')
    checkWork(t, (await response.json()) as Work, { calculations: 1001, array: 100, calls: 7 })
  })

  t.test('a parameter that makes no sense is refused', async (t) => {
    const refusals = {
      'level=10': 'level must be a whole number from 1 to 9',
      'array=1e7': 'array must be a whole number from 0 to 1000000',
      'calls=many': 'calls must be a whole number from 0 to 10000000',
      'calculations=5': 'calculations need an array of at least 1 and at least 1 call',
    }
    for (const [query, error] of Object.entries(refusals)) {
      const response = await calculate(query)
      t.equal(response.status, 400)
      t.strictSame(await response.json(), { error })
    }
  })
})

function checkWork(t: Test, work: Work, expected: { calculations: number; array: number; calls: number }): void {
  t.match(work, expected)
  t.equal(work.multiplications + work.divisions, expected.calculations)
  // A product is from 1 to 4, a quotient from 1/2 to 2.
  t.ok(work.sum >= work.multiplications + work.divisions / 2, `${work.sum} is not too small`)
  t.ok(work.sum <= 4 * work.multiplications + 2 * work.divisions, `${work.sum} is not too large`)
}
