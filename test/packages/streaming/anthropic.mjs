import Anthropic from '@anthropic-ai/sdk'

const asked = { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] }
const encoder = new TextEncoder()

export default async (request) => {
  const { pathname, searchParams } = new URL(request.url)
  const client = new Anthropic({ apiKey: 'k', baseURL: searchParams.get('upstream'), maxRetries: 0 })
  const stream = client.messages.stream(asked, { signal: request.signal })
  if (pathname === '/lines') return new Response(stream.toReadableStream())
  if (pathname === '/events') {
    const body = new ReadableStream({
      start(controller) {
        stream.on('text', (text) => controller.enqueue(encoder.encode(text)))
        stream.on('finalMessage', ({ content }) => controller.enqueue(encoder.encode(`|${content[0].text}`)))
        stream.on('end', () => controller.close())
        stream.on('error', (error) => controller.error(error))
      },
      cancel: () => stream.abort(),
    })
    return new Response(body)
  }
  const texts = async function* () {
    for await (const { type, delta } of stream) if (type === 'content_block_delta') yield delta.text
    yield `|${(await stream.finalMessage()).stop_reason}`
  }
  return new Response(ReadableStream.from(texts()).pipeThrough(new TextEncoderStream()))
}
