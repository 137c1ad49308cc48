import t from 'tap'
import { HOUR_MS, open, record, save, START_MS } from './fixtures/records.ts'

t.test(
  'an owner is told of its own rows alone, also of a name that had another owner, before and after the totals hold them',
  async (t) => {
    const folder = t.testdir()
    const first = await open(folder)
    const mine = [
      record({ owner: 'ann', functionName: 'shop', revision: 'a' }),
      record({ owner: 'ann', functionName: 'deleted', revision: 'b', startedAtMs: START_MS + HOUR_MS, outcome: 'timeout' }),
    ]
    const others = [
      record({ owner: 'bob', functionName: 'shop', revision: 'a', wallUs: 9_000_000, outcome: 'exception' }),
      record({ owner: 'bob', functionName: 'store', revision: 'c', startedAtMs: START_MS + HOUR_MS }),
    ]
    for (const each of [mine[0]!, others[0]!, mine[1]!, others[1]!]) await save(first.ledger, each, 0)
    const idsOf = (records: ReadonlyArray<{ readonly id: string }>) => records.map(({ id }) => id)
    const check = async ({ ledger }: typeof first): Promise<void> => {
      t.strictSame(idsOf(await ledger.invocations({ owner: 'ann', limit: 9 })), idsOf(mine.toReversed()))
      t.strictSame(idsOf(await ledger.invocations({ owner: 'ann', functionName: 'shop', limit: 9 })), idsOf([mine[0]!]))
      t.strictSame(idsOf(await ledger.invocations({ owner: 'ann', failed: true, slow: true, limit: 9 })), idsOf([mine[1]!]))
      t.strictSame(await ledger.invocations({ owner: 'ann', functionName: 'store', limit: 9 }), [])
      t.strictSame(await ledger.invocations({ owner: `' OR 1 --`, limit: 9 }), [])
      t.equal((await ledger.invocations({ limit: 9 })).length, 4)
      const ofAnn = await ledger.usage({ by: 'function', owner: 'ann' })
      t.match(ofAnn, [
        { key: 'deleted', invocations: 1, failures: 1, wallUs: 5_500 },
        { key: 'shop', invocations: 1, failures: 0, wallUs: 5_500 },
      ])
      t.equal(ofAnn.length, 2)
      t.match(await ledger.usage({ by: 'owner', owner: 'ann' }), [{ key: 'ann', invocations: 2 }])
      t.match(await ledger.usage({ by: 'hour', owner: 'ann', functionName: 'shop' }), [{ invocations: 1 }])
      t.strictSame(await ledger.usage({ by: 'function', owner: 'nobody' }), [])
      t.equal((await ledger.usage({ by: 'owner' })).length, 2)
    }
    await check(first)
    await first.ledger.close()
    const second = await open(folder)
    await check(second)
    await second.ledger.close()
  },
)
