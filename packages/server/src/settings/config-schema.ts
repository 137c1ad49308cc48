import { describeRange, type Setting } from './setting.ts'
import { SETTINGS } from './table.ts'

/** JSON Schema of the file with the server's settings. What depends on the machine, such as its cores, is not in it. */
export function configSchema(): object {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Settings of a Carpool server',
    type: 'object',
    additionalProperties: false,
    properties: {
      $schema: { type: 'string' },
      ...Object.fromEntries(Object.entries(SETTINGS).map(([name, setting]) => [name, schemaOf(setting)])),
    },
  }
}

function schemaOf(setting: Setting): object {
  const base = { description: `${setting.help}. Range: ${describeRange(setting)}.`, default: setting.default }
  switch (setting.type) {
    case 'number': {
      const { min, max, zeroMeans } = setting
      const range = { type: 'integer', minimum: min, ...(max !== 'cores' && { maximum: max }) }
      return { ...base, ...(zeroMeans !== undefined && min > 0 ? { anyOf: [{ const: 0 }, range] } : range) }
    }
    case 'text':
      return { ...base, type: 'string', ...(setting.choices !== undefined && { enum: setting.choices }) }
    case 'list':
      return {
        ...base,
        type: 'array',
        items: { type: 'string', ...(setting.choices !== undefined && { enum: setting.choices }) },
      }
  }
}
