import OpenAI from 'openai'

const asked = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }
const encoder = new TextEncoder()

/** A body of what comes of an iteration, and what makes it end early. */
const bodyOf = (texts) => ReadableStream.from(texts).pipeThrough(new TextEncoderStream())

const WAYS = {
  async *chat(client, signal) {
    const stream = await client.chat.completions.create({ ...asked, stream: true }, { signal })
    for await (const { choices } of stream) yield choices[0]?.delta.content ?? ''
  },
  async *responses(client, signal) {
    const stream = client.responses.stream({ model: 'm', input: 'hi' }, { signal })
    for await (const event of stream) if (event.type === 'response.output_text.delta') yield event.delta
    yield `|${(await stream.finalResponse()).output_text}`
  },
}

export default async (request) => {
  const { pathname, searchParams } = new URL(request.url)
  const client = new OpenAI({ apiKey: 'k', baseURL: searchParams.get('upstream'), maxRetries: 0 })
  const way = pathname.slice(1)
  // Its helper tells of tokens by events, and is not pulled.
  if (way === 'events') {
    const stream = client.chat.completions.stream(asked)
    const body = new ReadableStream({
      start(controller) {
        stream.on('content', (delta) => controller.enqueue(encoder.encode(delta)))
        stream.on('finalContent', (content) => controller.enqueue(encoder.encode(`|${content}`)))
        stream.on('end', () => controller.close())
        stream.on('error', (error) => controller.error(error))
      },
      cancel: () => stream.abort(),
    })
    return new Response(body)
  }
  // Its own form for browsers: a line of JSON for each chunk.
  if (way === 'lines') return new Response((await client.chat.completions.create({ ...asked, stream: true })).toReadableStream())
  return new Response(bodyOf(WAYS[way](client, request.signal)))
}
