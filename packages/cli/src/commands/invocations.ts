import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import { renderInvocations } from '../invocation-text.ts'
import { wholeNumber } from '../option-parsers.ts'
import { addSinceOption, type SinceOption } from '../since-option.ts'
import type { Verb } from '../verb.ts'

interface InvocationsOptions extends ConnectionOptions, SinceOption {
  readonly slow?: boolean
  readonly failed?: boolean
  readonly limit: number
}

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 1000

export const invocations: Verb<InvocationsOptions> = {
  define(command) {
    command
      .option('--slow', 'the longest first, by the time without queue and init, instead of the newest')
      .option('--failed', 'only those that failed or were refused')
      .option('-n, --limit <count>', 'most invocations to print', wholeNumber(1, MAX_LIMIT), DEFAULT_LIMIT)
    addSinceOption(command, 'only those that began since then')
    addConnectionOptions(command)
  },

  async run({ args: [functionName], options: { slow, failed, limit, since, ...options }, io, output }) {
    const records = await connect(options, { io, output }).invocations({
      limit,
      ...(functionName !== undefined && { functionName }),
      ...(since !== undefined && { sinceMs: since }),
      ...(failed && { failed }),
      ...(slow && { slow }),
    })
    if (records.length > 0 || output.json) output.answer(records, renderInvocations(records, io.stdout))
    else output.note('There are no such invocations.')
  },
}
