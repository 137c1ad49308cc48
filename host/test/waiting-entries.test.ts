import { Account } from '../src/accounting/account.ts'
import { ENTRIES } from '@carpool/runtime/bridge'
import t from 'tap'
import { Entry } from '../src/scheduler/batch.ts'
import { WaitingEntries } from '../src/scheduler/waiting-entries.ts'

const background = new Account()

function entry(name: string, account: Account, invocation?: number): Entry {
  const op = invocation === undefined ? ENTRIES.fireTimer : ENTRIES.invoke
  return new Entry(account, op, invocation ?? 0, name, 0, '', 7)
}

t.test('calls go first, then background work, each in the order in which it came', async (t) => {
  const waiting = new WaitingEntries(background)
  const [open, closed] = [new Account(), new Account()]
  closed.close(background)
  waiting.push(entry('timer of an invocation that has its answer', closed))
  waiting.push(entry('first', open, 1))
  waiting.push(entry('timer', background))
  waiting.push(entry('second', open, 2))
  t.same(names(waiting.take(8)), ['first', 'second'])
  t.same(names(waiting.take(1)), ['timer of an invocation that has its answer'])
  t.same(names(waiting.take(8)), ['timer'])
  t.ok(waiting.isEmpty)
})

t.test('in a busy guest background work gets a fifth of the CPU time, whatever its entries take', (t) => {
  for (const [callMs, timerMs] of [
    [4, 0.01],
    [4, 4],
    [0.05, 20],
  ] as const) {
    const waiting = new WaitingEntries(background)
    let [calls, timers, busyMs, timersMs] = [0, 0, 0, 0]
    for (let batch = 0; batch < 5_000; batch++) {
      waiting.push(entry('call', new Account(), batch))
      waiting.push(entry('timer', background))
      const [one] = names(waiting.take(1))
      const tookMs = one === 'call' ? callMs : timerMs
      waiting.record(tookMs * 1e6)
      t.equal(waiting.isForeground, one === 'call')
      busyMs += tookMs
      if (one === 'call') calls++
      else [timers, timersMs] = [timers + 1, timersMs + timerMs]
    }
    const share = timersMs / busyMs
    if (timerMs < callMs / 10) t.ok(timers >= calls - 1, `${timers} timers of ${calls} calls`)
    else t.ok(Math.abs(share - 0.2) < 0.05, `${share}`)
  }
  t.end()
})

t.test('what others must find done goes in its turn, though it is background work', (t) => {
  const waiting = new WaitingEntries(background)
  const open = new Account()
  waiting.push(new Entry(background, ENTRIES.cancel, 5, 'cancel'))
  waiting.push(entry('settleFetch', open))
  t.same(names(waiting.take(8)), ['cancel', 'settleFetch'])
  t.end()
})

t.test('what comes by a stream goes in behind what came by it before, whoever each is charged to', async (t) => {
  const waiting = new WaitingEntries(background)
  const data = entry('data', background)
  waiting.push(data)
  const open = new Account()
  waiting.push(entry('call', open, 1))
  const more = entry('message for the call', open)
  waiting.push(more, data)
  waiting.push(entry('end', open), more)
  t.same(names(waiting.take(8)), ['call'])
  t.same(names(waiting.take(8)), ['data', 'message for the call', 'end'])
  data.hasGoneIn = true
  waiting.push(entry('timer', background))
  waiting.push(entry('next', open), data)
  t.same(names(waiting.take(8)), ['next'])
})

t.test('a call that has begun goes on before others begin, until it has used much', async (t) => {
  const waiting = new WaitingEntries(background)
  const [short, long, next] = [new Account(), new Account(), new Account()]
  waiting.push(entry('short', short, 1))
  waiting.push(entry('long', long, 2))
  waiting.push(entry('body of the short one', short))
  t.same(names(goIn(waiting, 8)), ['short', 'long', 'body of the short one'], 'nothing of it comes before its beginning')
  long.charge(10e6)
  waiting.push(entry('next', next, 3))
  waiting.push(entry('long goes on', long))
  waiting.push(entry('short goes on', short))
  t.same([...waiting.resuming], [short, long])
  t.same(names(goIn(waiting, 2)), ['short goes on', 'next'])
  short.charge(9.9e6)
  const last = entry('short goes on', short)
  waiting.push(last)
  short.charge(1e6)
  waiting.push(entry('and is not overtaken', short), last)
  t.same(names(goIn(waiting, 8)), ['short goes on', 'long goes on', 'and is not overtaken'])
})

t.test('what comes by a stream stays behind what came before, and goes first no longer than its call does', async (t) => {
  const waiting = new WaitingEntries(background)
  const [socket, other] = [new Account(), new Account()]
  waiting.push(entry('invoke', socket, 1))
  goIn(waiting, 8)
  const first = entry('message', socket)
  waiting.push(first)
  waiting.push(entry('other', other, 2))
  socket.charge(10e6)
  const second = entry('second message', socket)
  waiting.push(second, first)
  socket.close(background)
  waiting.push(entry('after its end', socket), second)
  t.same(names(goIn(waiting, 8)), ['message', 'other', 'second message', 'after its end'])
})

t.test('the end of a call comes before what it brings about', async (t) => {
  const waiting = new WaitingEntries(background)
  const call = new Account()
  waiting.push(entry('invoke', call, 5))
  goIn(waiting, 8)
  waiting.push(entry('other', new Account(), 6))
  waiting.push(new Entry(background, ENTRIES.cancel, 5, 'cancel'))
  waiting.push(entry('its fetch has ended', call))
  t.same(names(goIn(waiting, 8)), ['cancel', 'its fetch has ended', 'other'])
})

t.test('a call that begins again in another isolate has not begun there', async (t) => {
  const call = new Account()
  const [lost, waiting] = [new WaitingEntries(background), new WaitingEntries(background)]
  lost.push(entry('invoke', call, 1))
  goIn(lost, 1)
  waiting.push(entry('another', new Account(), 2))
  waiting.push(entry('invoke', call, 1))
  waiting.push(entry('body', call))
  t.same(names(goIn(waiting, 8)), ['another', 'invoke', 'body'])
})

t.test('it is known which accounts wait, and since when; background work is not counted', async (t) => {
  const waiting = new WaitingEntries(background)
  waiting.push(entry('timer', background))
  t.equal(waiting.sinceMs, undefined)
  const [begun, notStarted] = [new Account(), new Account()]
  waiting.push(entry('fireTimer', begun))
  waiting.push(entry('invoke', notStarted, 3))
  t.same([...waiting.resuming], [begun])
  t.same([...waiting.notStarted], [notStarted])
  t.equal(waiting.sinceMs, 7)
  t.ok(waiting.remove(3))
  t.notOk(waiting.remove(3))
  t.equal(waiting.notStarted.size, 0)
})

function goIn(waiting: WaitingEntries, max: number): Entry[] {
  const taken = waiting.take(max)
  for (const one of taken) one.goesIn()
  return taken
}

function names(entries: readonly Entry[]): string[] {
  return entries.map(({ text }) => text)
}
