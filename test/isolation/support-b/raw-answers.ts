import type { Answer } from '../harness/call.ts'

/** The answers in what came over a plain connection, in order. What is cut off in the middle is no answer. */
export function answersIn(received: string, path = '/'): Answer[] {
  const answers: Answer[] = []
  let rest = received
  for (;;) {
    const end = rest.indexOf('\r\n\r\n')
    const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(rest) ?? []
    if (end < 0 || status === undefined) return answers
    // One that says to go on, or asks whether anybody is there.
    if (status.startsWith('1')) {
      rest = rest.slice(end + 4)
      continue
    }
    const headers = new Headers(
      rest
        .slice(0, end)
        .split('\r\n')
        .slice(1)
        .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()] as [string, string]),
    )
    const bodyBegin = end + 4
    const bodyEnd = bodyBegin + Number(headers.get('content-length') ?? 0)
    if (rest.length < bodyEnd) return answers
    const text = rest.slice(bodyBegin, bodyEnd)
    const isProblem = headers.get('content-type')?.startsWith('application/problem+json') === true
    const code = isProblem ? (JSON.parse(text) as { code: string }).code : ''
    const id = headers.get('x-carpool-invocation') ?? ''
    answers.push({ path, status: Number(status), code, text, headers, id, tookMs: 0 })
    rest = rest.slice(bodyEnd)
  }
}
