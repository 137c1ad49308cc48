import { OUTCOMES, START_KINDS } from '@carpool/core'
import {
  FUNCTION_INFO,
  oneOf,
  READINESS,
  SECRET_INFO,
  SERVER_INFO,
  STATUS,
  TOKEN_INFO,
} from '@carpool/core/control-plane-schemas'
import { LAYER_NAMES } from '@carpool/sandbox'
import { Type } from '@carpool/core/schema'
import type { TObject, TSchema } from 'typebox'

/** What the OpenAPI document has besides the schemas of core: parameters, lists, and what the ledger gives. */

/** The rule of `checkFunctionName`, which has the last word. */
export const NAME_PATTERN = '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'

/** Parameters of addresses, by name: for the document alone, as what handles a request says more of what is wrong. */
export const PATH_PARAMETERS: Readonly<Record<string, TSchema>> = {
  name: Type.String({ pattern: NAME_PATTERN }),
  key: Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$', maxLength: 256 }),
  id: Type.String({ pattern: '^[0-9a-f]{16}$' }),
}

const text = Type.String()
const count = Type.Integer({ minimum: 0 })
/** Counts with these names, which have spaces between. */
const counts = (names: string) => Object.fromEntries(names.split(' ').map((name) => [name, count]))

export const FUNCTION_LIST = Type.Object({ functions: Type.Array(FUNCTION_INFO) })
export const SECRET_LIST = Type.Object({ secrets: Type.Array(SECRET_INFO) })
export const TOKEN_LIST = Type.Object({ tokens: Type.Array(TOKEN_INFO) })
export const HEALTH = Type.Object({ status: oneOf(['ok']) })

const TOTALS =
  'invocations failures refused coldStarts cpuUs initCpuUs backgroundCpuUs wallUs queueUs initUs exec1Ms exec1MbMs exec100Ms ' +
  'exec100MbMs init1Ms init1MbMs instanceUs instanceMbMs bytesIn bytesOut egressBytesIn egressBytesOut openUs ' +
  'sockets socketUs memoryPeakKb'
export const USAGE_ROWS = Type.Object({ rows: Type.Array(Type.Object({ key: text, ...counts(TOTALS) })) })

const RECORD_COUNTS =
  'startedAtMs host queueUs wallUs memoryMb bytesIn bytesOut openUs cpuUs initUs initCpuUs memoryPeakKb egressBytesOut ' +
  'egressBytesIn sockets socketUs attempts'
export const INVOCATION_RECORDS = Type.Object({
  invocations: Type.Array(
    Type.Object({
      id: text,
      functionName: text,
      revision: text,
      owner: text,
      trigger: oneOf(['http', 'cli']),
      start: oneOf(START_KINDS),
      outcome: oneOf([...Object.keys(OUTCOMES), 'refused']),
      error: Type.Optional(text),
      status: Type.Integer(),
      ...counts(RECORD_COUNTS),
    }),
  ),
})

export const READINESS_ANSWER = withLayerNames(READINESS)
export const SERVER_ANSWER = withLayerNames(SERVER_INFO)
export const STATUS_ANSWER = withLayerNames(STATUS)

/** Core does not know which layers there are. */
function withLayerNames({ properties }: typeof READINESS | typeof SERVER_INFO | typeof STATUS): TObject {
  const { off } = properties.sandbox.properties
  const layers = Type.Array(oneOf(LAYER_NAMES))
  const named = Type.Array(Type.Object({ ...off.items.properties, layers }))
  return Type.Object({ ...properties, sandbox: Type.Object({ ...properties.sandbox.properties, off: named }) })
}
