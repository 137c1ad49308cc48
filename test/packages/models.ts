import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/** An answer of a model that is under way: it says what the test lets it say. */
export interface Saying {
  say(token: string): void
  end(): void
  /** Closes the connection, as a machine that fails. */
  breakOff(): void
  /** Resolves when who asked has left before the end. */
  readonly left: Promise<void>
}

export interface Models {
  readonly url: string
  /** Resolves with the next answer that is asked for; it has its head, and not one token. */
  asked(): Promise<Saying>
}

/** How an answer of an interface looks: what comes before the tokens, each of them, and what comes after all. */
interface Form {
  begin(): string
  token(text: string): string
  end(all: string): string
}

const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`
const event = (value: { readonly type: string }): string => `event: ${value.type}\n${data(value)}`

const chunk = (choice: object): string =>
  data({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, ...choice }] })

const response = (status: string, output: object[]): object => ({ id: 'r', object: 'response', model: 'm', status, output })
const message = (status: string, content: object[]): object => ({ id: 'i', type: 'message', role: 'assistant', status, content })
const OF_OUTPUT = { item_id: 'i', output_index: 0, content_index: 0 }
const written = (text: string): object => ({ type: 'output_text', text, annotations: [] })

const FORMS: Readonly<Record<string, Form>> = {
  '/chat/completions': {
    begin: () => chunk({ delta: { role: 'assistant', content: '' }, finish_reason: null }),
    token: (content) => chunk({ delta: { content }, finish_reason: null }),
    end: () => `${chunk({ delta: {}, finish_reason: 'stop' })}data: [DONE]\n\n`,
  },
  '/responses': {
    begin: () =>
      [
        { type: 'response.created', response: response('in_progress', []) },
        { type: 'response.output_item.added', output_index: 0, item: message('in_progress', []) },
        { type: 'response.content_part.added', ...OF_OUTPUT, part: written('') },
      ]
        .map(event)
        .join(''),
    token: (delta) => event({ type: 'response.output_text.delta', ...OF_OUTPUT, delta } as { type: string }),
    end: (text) =>
      [
        { type: 'response.output_text.done', ...OF_OUTPUT, text },
        { type: 'response.output_item.done', output_index: 0, item: message('completed', [written(text)]) },
        { type: 'response.completed', response: response('completed', [message('completed', [written(text)])]) },
      ]
        .map(event)
        .join(''),
  },
  '/v1/messages': {
    begin: () =>
      [
        {
          type: 'message_start',
          message: {
            id: 'm',
            type: 'message',
            role: 'assistant',
            content: [],
            model: 'm',
            stop_reason: null,
            usage: { input_tokens: 1, output_tokens: 1 },
          },
        },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'ping' },
      ]
        .map(event)
        .join(''),
    token: (text) => event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } } as { type: string }),
    end: () =>
      [
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 3 } },
        { type: 'message_stop' },
      ]
        .map(event)
        .join(''),
  },
}

/** A server that answers as models do, token by token, each when the test says so. */
export async function startModels(t: Test): Promise<Models> {
  const answers: Saying[] = []
  const waiting: ((answer: Saying) => void)[] = []
  const server = createServer((request, response) => {
    const form = FORMS[request.url ?? '']
    if (form === undefined) return void response.writeHead(404).end()
    request.resume().once('end', () => {
      const answer = saying(form, response)
      const resolve = waiting.shift()
      if (resolve === undefined) answers.push(answer)
      else resolve(answer)
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: async () => answers.shift() ?? new Promise((resolve) => waiting.push(resolve)),
  }
}

function saying(form: Form, response: ServerResponse): Saying {
  let all = ''
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write(form.begin())
  const left = new Promise<void>((resolve) => {
    response.once('close', () => {
      if (!response.writableFinished) resolve()
    })
  })
  return {
    say(token) {
      all += token
      response.write(form.token(token))
    },
    end: () => void response.end(form.end(all)),
    breakOff: () => void response.destroy(),
    left,
  }
}
