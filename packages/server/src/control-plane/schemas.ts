import { Type } from 'typebox'

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
    env: Type.Optional(
      Type.Record(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }), Type.String(), { additionalProperties: false }),
    ),
  },
  { additionalProperties: false },
)

export const INVOKE_BODY = Type.Object(
  {
    method: Type.String({ pattern: '^[A-Z]{1,20}$' }),
    path: Type.String({ pattern: '^/', maxLength: 16_384 }),
    headers: Type.Array(Type.Tuple([Type.String({ pattern: "^[a-z0-9!#$%&'*+.^_`|~-]+$" }), Type.String()]), { maxItems: 200 }),
    bodyBase64: Type.String(),
  },
  { additionalProperties: false },
)
