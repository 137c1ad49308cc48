export const WORKLOADS = ['hello', 'json', 'timer'] as const
export type WorkloadName = (typeof WORKLOADS)[number]

/** What all servers are asked, with the same request, and what each has to answer. */
export interface Workload {
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly answer: string
}

const JSON_BYTES = 1024
const DOCUMENT = jsonDocument()

export const WORKLOAD: Readonly<Record<WorkloadName, Workload>> = {
  hello: { method: 'GET', headers: {}, answer: 'hello' },
  // It is parsed, and answered as JSON again.
  json: { method: 'POST', headers: { 'content-type': 'application/json' }, body: DOCUMENT, answer: DOCUMENT },
  // The handler awaits one timer of 1 ms.
  timer: { method: 'GET', headers: {}, answer: 'hello' },
}

/** The same path for all servers, so that the requests have the same size. */
export function pathOf(workload: WorkloadName): string {
  return `/${workload}/`
}

/** A document of 1 KB with values of all kinds. */
function jsonDocument(): string {
  const items = Array.from({ length: 12 }, (_, index) => ({
    id: index,
    name: `item ${index}`,
    price: index * 1.25,
    isNew: index % 2 === 0,
  }))
  const document = {
    order: 4711,
    customer: { name: 'someone', tags: ['a', 'b'], note: null as string | null },
    items,
    padding: '',
  }
  return JSON.stringify({ ...document, padding: 'x'.repeat(JSON_BYTES - JSON.stringify(document).length) })
}
