/** What there is to try: each example with one call of it and the beginning of what comes back. */
export interface Stop {
  readonly functionName: string
  /** What follows the function's URL. */
  readonly path: string
  /** Arguments of curl besides the URL. */
  readonly curl?: readonly string[]
  readonly answer: string
}

const INVOICE = { id: 'in_42', amount: 1250, currency: 'eur', customer_email: 'ada@example.com' }
const EVENT = { type: 'invoice.paid', created: 1_795_253_400, data: { object: INVOICE } }

export const TOUR: readonly Stop[] = [
  { functionName: 'time', path: '', answer: '{"now":"2026-11-21T09:30:00.000Z"}' },
  { functionName: 'hono', path: 'notes/1', curl: ['-X', 'PUT', '-d', '{"text":"buy milk"}'], answer: '{"text":"buy milk"}' },
  {
    functionName: 'webhook',
    path: '',
    curl: ['-d', JSON.stringify(EVENT)],
    answer: '{"event":"invoice.paid","at":…,"to":"ada@example.com","text":"in_42: 12.50 EUR received"}',
  },
  {
    functionName: 'weather',
    path: '?city=Oslo',
    answer: '{"city":"Oslo","warmest":18,"coldest":8,"umbrella":false}, when its slow upstream has answered',
  },
  {
    functionName: 'lambda',
    path: 'greet?name=Ada',
    answer: '{"greeting":"Hello Ada","request":"GET /greet","function":"lambda"}',
  },
  { functionName: 'calc', path: '?level=4', answer: '{"calculations":200000,"array":10000,"calls":20,…}' },
  {
    functionName: 'seed',
    path: '?call=[1-10]',
    curl: ['-Z', '--parallel-immediate', '--no-progress-meter', '-w', '\\n'],
    answer: 'ten lines at once, after about 3 s: one instance id, and the invocation ids 1 to 10',
  },
]

/** The line of curl that makes a stop's call. */
export function curlLine(serverUrl: string, { functionName, path, curl = [] }: Stop): string {
  return ['curl', ...curl, `${serverUrl}/${functionName}/${path}`].map(quote).join(' ')
}

function quote(argument: string): string {
  return /^[\w:/.-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`
}
