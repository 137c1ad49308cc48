import t from 'tap'
import { deployTurns } from '../src/deploy-turns.ts'

const SHOP = { functionName: 'shop', owner: 'acme' }

t.test('changes of a name take turns in their order; an urgent one waits for the one at work alone', async (t) => {
  const inTurn = deployTurns()
  const done: string[] = []
  const first = Promise.withResolvers<void>()
  const work = (name: string) => async (): Promise<void> => void done.push(name)
  const all = [
    inTurn(SHOP, () => first.promise.then(work('first'))),
    inTurn(SHOP, work('second')),
    inTurn(SHOP, () => Promise.reject(new Error('third'))).catch(work('third')),
    inTurn(SHOP, work('fourth')),
    inTurn({ ...SHOP, isUrgent: true }, work('urgent')),
  ]
  await inTurn({ ...SHOP, functionName: 'other' }, work('other'))
  first.resolve()
  await Promise.all(all)
  t.strictSame(done.toSorted(), ['first', 'fourth', 'other', 'second', 'third', 'urgent'])
  t.strictSame(
    done.filter((name) => name !== 'third'),
    ['other', 'first', 'urgent', 'second', 'fourth'],
  )
  await inTurn(SHOP, work('again'))
  t.equal(done.at(-1), 'again')
})

t.test('of one owner not many wait; others and what is urgent are not refused', async (t) => {
  const inTurn = deployTurns(2)
  const first = Promise.withResolvers<void>()
  const noWork = async (): Promise<void> => {}
  const all = [
    inTurn(SHOP, () => first.promise),
    inTurn(SHOP, noWork),
    inTurn({ ...SHOP, functionName: 'other' }, () => first.promise),
  ]
  const refused = { code: 'saturated', message: '2 deploys of acme wait, which is the limit; try again when some are done.' }
  await t.rejects(inTurn(SHOP, noWork), refused)
  await t.rejects(inTurn({ ...SHOP, functionName: 'third' }, noWork), refused)
  all.push(inTurn({ ...SHOP, owner: 'beta' }, noWork), inTurn({ ...SHOP, isUrgent: true }, noWork))
  first.resolve()
  await Promise.all(all)
  await inTurn(SHOP, noWork)
})
