import t from 'tap'
import { Account } from '../src/accounting/account.ts'
import { Remains } from '../src/isolates/remains.ts'
import { Stay } from '../src/scheduler/stay.ts'

const stay = (): Stay => new Stay([new Account()], 0)

t.test('a revision begins anew when the threads of its isolates have come out, and not before', async (t) => {
  const remains = new Remains()
  t.equal(await remains.mayBegin('r'), true, 'nothing remains')
  const [one, two] = [stay(), stay()]
  remains.disposed('r', one)
  remains.disposed('r', two)
  let answer: boolean | undefined
  const asked = remains.mayBegin('r').then((may) => (answer = may))
  t.equal(await remains.mayBegin('other'), true)
  remains.left(one)
  await new Promise(setImmediate)
  t.equal(answer, undefined, 'one is still in')
  remains.left(two)
  t.equal(await asked, true)
})

t.test('where a thread is stuck, its revision never begins again, nor do those that wait for it', async (t) => {
  const remains = new Remains()
  const one = stay()
  remains.disposed('r', one)
  const asked = remains.mayBegin('r')
  remains.stuck('r', one)
  t.equal(await asked, false)
  remains.left(one)
  t.equal(await remains.mayBegin('r'), false)
  t.equal(await remains.mayBegin('other'), true)
})
