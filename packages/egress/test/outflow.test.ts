/** What a function sends to a peer, and when TLS may begin behind it. */
import { SharedPool } from '@carpool/core'
import t from 'tap'
import { Outflow } from '../src/outflow.ts'
import { StreamMemory } from '../src/stream-memory.ts'

const HOLDER = { functionName: 'f', owner: 'o' }

/** An outflow, what it has written, and what says that the system has taken the next of that. */
function outflow() {
  const written: string[] = []
  const waiting: Array<() => void> = []
  const memory = new StreamMemory(new SharedPool(1_000_000))
  const flow = new Outflow({
    holder: HOLDER,
    memory,
    write: (bytes, taken) => {
      written.push(Buffer.from(bytes).toString())
      waiting.push(taken)
    },
    end: () => written.push('end'),
    credit: () => {},
  })
  flow.start()
  const send = (text: string): void => flow.receive(Uint8Array.from(Buffer.from(text)))
  return { flow, written, memory, send, take: () => waiting.shift()?.() }
}

t.test('whoever holds is told once all that came before was taken, and nothing that comes later leaves meanwhile', async (t) => {
  const { flow, written, memory, send, take } = outflow()
  let held = 0
  send('a')
  send('b')
  flow.hold(() => held++)
  send('c')
  t.strictSame(written, ['a', 'b'])
  take()
  t.equal(held, 0)
  take()
  t.equal(held, 1)
  send('d')
  flow.end()
  t.strictSame(written, ['a', 'b'])
  flow.start()
  t.strictSame(written, ['a', 'b', 'cd'])
  take()
  t.strictSame(written, ['a', 'b', 'cd', 'end'])
  t.equal(held, 1)
  t.equal(flow.bytesOut, 4)
  flow.close()
  t.equal(memory.used, 0)
})

t.test('it is told at once if nothing is under way, and never once the flow is closed', async (t) => {
  const idle = outflow()
  let held = 0
  idle.flow.hold(() => held++)
  t.equal(held, 1)
  const closed = outflow()
  closed.send('a')
  closed.flow.hold(() => held++)
  closed.flow.close()
  closed.take()
  t.equal(held, 1)
  t.equal(closed.memory.used, 0)
})
