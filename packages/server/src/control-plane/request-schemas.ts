import { MAX_TOKEN_DAYS, TOKEN_SCOPES } from '@carpool/core'
import { Type, type TSchema } from 'typebox'

/** The rule of `checkFunctionName`, which has the last word. */
const NAME = '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'
const KEY = '^[A-Za-z_][A-Za-z0-9_]*$'

/** Parameters of addresses, by name: for the document alone, as what handles a request says more of what is wrong. */
export const PATH_PARAMETERS: Readonly<Record<string, TSchema>> = {
  name: Type.String({ pattern: NAME }),
  key: Type.String({ pattern: KEY, maxLength: 256 }),
  id: Type.String({ pattern: '^[0-9a-f]{16}$' }),
}

export const OWNER_PARAMETER = Type.Optional(
  Type.String({ pattern: NAME, description: 'For admins: whose. Others see, and act for, the owner of their token alone.' }),
)

export const DEPLOY_BODY = Type.Object(
  {
    code: Type.String(),
    sourceMap: Type.String(),
    handlerExport: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    limits: Type.Optional(
      Type.Object(
        {
          memoryMb: Type.Optional(Type.Integer()),
          cpuMs: Type.Optional(Type.Integer()),
          wallMs: Type.Optional(Type.Integer()),
          concurrency: Type.Optional(Type.Integer()),
        },
        { additionalProperties: false },
      ),
    ),
    env: Type.Optional(Type.Record(Type.String({ pattern: KEY }), Type.String(), { additionalProperties: false })),
    // What a host is, the egress knows.
    egress: Type.Optional(Type.Array(Type.String())),
  },
  { additionalProperties: false },
)

const HEADER_NAME = "^[a-z0-9!#$%&'*+.^_`|~-]+$"
/** RFC 9110, section 5.5: no control characters, so that a value cannot end its header. */
const HEADER_VALUE = '^[\\t\\x20-\\x7e\\x80-\\xff]*$'

export const INVOKE_BODY = Type.Object(
  {
    method: Type.String({ pattern: '^[A-Z]{1,20}$' }),
    path: Type.String({ pattern: '^/', maxLength: 16_384 }),
    headers: Type.Array(Type.Tuple([Type.String({ pattern: HEADER_NAME }), Type.String({ pattern: HEADER_VALUE })]), {
      maxItems: 200,
    }),
    // Else it would be decoded as far as it goes.
    bodyBase64: Type.String({ pattern: '^[A-Za-z0-9+/]*={0,2}$' }),
  },
  { additionalProperties: false },
)

export const TOKEN_BODY = Type.Object(
  {
    owner: Type.String({ maxLength: 63 }),
    scopes: Type.Array(Type.Unsafe<string>({ type: 'string', enum: TOKEN_SCOPES }), { minItems: 1, maxItems: 16 }),
    days: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_TOKEN_DAYS })),
  },
  { additionalProperties: false },
)

export const SECRET_BODY = Type.Object({ value: Type.String({ minLength: 1 }) }, { additionalProperties: false })

/** Completes "it is disabled because …" on one line. */
export const DISABLE_BODY = Type.Object(
  {
    reason: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$' }),
    ),
  },
  { additionalProperties: false },
)
