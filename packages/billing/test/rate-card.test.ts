import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CarpoolError } from '@carpool/core'
import t from 'tap'
import { isRateCardName, rateCard, RATE_CARD_NAMES, readRateCard } from '../src/index.ts'

const PRICE = {
  name: 'requests',
  meter: 'requests',
  divisor: 1_000_000,
  unit: 'million requests',
  usd: 0.25,
  source: 'our contract of 2026',
  asOf: '2026-11-21',
  checked: true,
}
const CARD = { name: 'mine', title: 'ours', prices: [PRICE], leftOut: [] }

t.test('every card that comes along is valid, named as its file, and has an address for each price', async (t) => {
  const files = readdirSync(join(import.meta.dirname, '../cards'))
  t.strictSame(
    files.toSorted(),
    RATE_CARD_NAMES.map((name) => `${name}.json`).toSorted((a, b) => (a < b ? -1 : 1)),
  )
  for (const name of RATE_CARD_NAMES) {
    const card = rateCard(name)
    t.equal(card.name, name)
    for (const { source } of card.prices) t.match(source, /^https:\/\//)
    t.ok(card.leftOut.length > 0, `${name} says what it leaves out`)
  }
  t.ok(isRateCardName('lambda'))
  t.notOk(isRateCardName('toString'))
})

t.test('a card of a user is read, with a byte order mark too', async (t) => {
  const path = join(t.testdir(), 'mine.json')
  writeFileSync(path, `\uFEFF${JSON.stringify(CARD)}`)
  t.strictSame(readRateCard(path), CARD)
})

t.test('what is wrong in a card is told with the file, the key and what is allowed', async (t) => {
  const path = join(t.testdir(), 'mine.json')
  const priced = (change: object) => ({ ...CARD, prices: [PRICE, { ...PRICE, ...change }] })
  const without = (key: keyof typeof PRICE) => ({ ...CARD, prices: [{ ...PRICE, [key]: undefined }] })
  const cases: [card: unknown, message: RegExp][] = [
    [null, /The card must be an object with the keys name, title, prices, leftOut, not null\.$/],
    [[CARD], /The card must be an object/],
    [{ ...CARD, name: 'two words' }, /: name must be a name of 1 to 64 letters, digits and hyphens, not "two words"/],
    [{ ...CARD, name: undefined }, /: name is missing; it must be a name of/],
    [{ ...CARD, title: '' }, /: title must be a line of text of 1 to 500 characters, not ""/],
    [{ ...CARD, title: 'a\u001b[31mb' }, /: title must be a line of text/],
    [{ ...CARD, title: 'x'.repeat(501) }, /: title must be a line of text.*not "x{59}…\.$/],
    [{ ...CARD, prices: [] }, /: prices must be a list of 1 to 100 prices, not \[\]/],
    [{ ...CARD, prices: {} }, /: prices must be a list/],
    [{ ...CARD, prices: ['free'] }, /: prices\[0\] must be an object with the keys name, meter, .*, not "free"/],
    [{ ...CARD, leftOut: [1] }, /: leftOut must be a list of at most 100 lines of text, not \[1\]/],
    [{ ...CARD, currency: 'EUR' }, /: there is no key currency: the keys are name, title, prices, leftOut\.$/],
    [JSON.parse('{"__proto__": {"name": "x"}}'), /: there is no key __proto__/],
    [priced({ meter: 'gbSeconds' }), /: prices\[1\]\.meter must be one of requests, cpuUs, .*, not "gbSeconds"/],
    [priced({ meter: 'constructor' }), /: prices\[1\]\.meter must be one of/],
    [priced({ usd: '0.2' }), /: prices\[1\]\.usd must be a number of US dollars from 0 to 1000000, not "0\.2"/],
    [priced({ usd: -1 }), /: prices\[1\]\.usd must be .*, not -1/],
    [priced({ divisor: 0 }), /: prices\[1\]\.divisor must be a number from 1 to 1000000000000000000, not 0/],
    [priced({ asOf: '21.11.2026' }), /: prices\[1\]\.asOf must be a date such as "2026-11-21", not "21\.11\.2026"/],
    [priced({ asOf: '2026-02-31' }), /: prices\[1\]\.asOf must be a date/],
    [priced({ asOf: '2026-13-01' }), /: prices\[1\]\.asOf must be a date/],
    [priced({ checked: 'yes' }), /: prices\[1\]\.checked must be true or false, not "yes"/],
    [priced({ price: 1 }), /: there is no key prices\[1\]\.price: the keys are name, meter, divisor/],
    [without('source'), /: prices\[0\]\.source is missing; it must be a line of text/],
  ]
  for (const [card, message] of cases) {
    writeFileSync(path, JSON.stringify(card))
    const error = t.throws(() => readRateCard(path), { code: 'invalid-config', message }) as CarpoolError
    t.ok(error.message.startsWith(`In the rate card ${path}: `), error.message)
  }
})

t.test('a file that is none, or holds no JSON, is told with its path', async (t) => {
  const folder = t.testdir({ 'broken.json': '{"name": ' })
  const failure = (path: string) => t.throws(() => readRateCard(path), { code: 'invalid-config' }) as CarpoolError
  t.match(failure(join(folder, 'none.json')).message, /none\.json cannot be read: there is no such file\.$/)
  t.match(failure(folder).message, /must be a file of at most 1048576 bytes\.$/)
  t.match(failure(join(folder, 'broken.json')).message, /broken\.json is no JSON: /)
})
