import t from 'tap'
import { serveExamples } from './support/serve-examples.ts'

t.test('webhook transforms what is valid and says what is not', async (t) => {
  const url = await serveExamples(t, ['webhook'])
  const post = async (body: string) => {
    const response = await fetch(`${url}/webhook/`, { method: 'POST', body })
    return { status: response.status, body: await response.json() }
  }
  const object = { id: 'in_42', amount: 1250, currency: 'eur', customer_email: 'ada@example.com' }
  const event = { type: 'charge.refunded', created: 1_795_253_400, data: { object } }

  t.strictSame(await post(JSON.stringify(event)), {
    status: 200,
    body: {
      event: 'charge.refunded',
      at: '2026-11-21T09:30:00.000Z',
      to: 'ada@example.com',
      text: 'in_42: 12.50 EUR paid back',
    },
  })
  t.strictSame(await post(JSON.stringify({ ...event, created: 'today', data: {} })), {
    status: 400,
    body: {
      issues: [
        { path: ['created'], message: 'Invalid input: expected number, received string' },
        { path: ['data', 'object'], message: 'Invalid input: expected object, received undefined' },
      ],
    },
  })
  t.match(await post('no JSON'), { status: 400, body: { issues: [{ path: [] }] } })
})
