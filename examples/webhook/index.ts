import { z } from 'zod'

const event = z.object({
  type: z.enum(['invoice.paid', 'charge.refunded']),
  created: z.int().nonnegative(),
  data: z.object({
    object: z.object({
      id: z.string(),
      amount: z.int().nonnegative(),
      currency: z.string().length(3).toUpperCase(),
      customer_email: z.email(),
    }),
  }),
})

const notification = event.transform(({ type, created, data: { object } }) => {
  const price = `${(object.amount / 100).toFixed(2)} ${object.currency}`
  return {
    event: type,
    at: new Date(created * 1000).toISOString(),
    to: object.customer_email,
    text: `${object.id}: ${price} ${type === 'invoice.paid' ? 'received' : 'paid back'}`,
  }
})

export default {
  async fetch(request: Request): Promise<Response> {
    const body: unknown = await request.json().catch(() => undefined)
    const { success, data, error } = notification.safeParse(body)
    if (success) return Response.json(data)
    const issues = error.issues.map(({ path, message }) => ({ path, message }))
    return Response.json({ issues }, { status: 400 })
  },
}
