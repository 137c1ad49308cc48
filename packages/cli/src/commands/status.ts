import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import { untilStopped } from '../until-stopped.ts'
import { renderStatus } from '../status-text.ts'
import type { Verb } from '../verb.ts'
import { watch } from '../watch.ts'

interface StatusOptions extends ConnectionOptions {
  readonly watch?: boolean
}

const WATCH_INTERVAL_MS = 1000
/** Moves to the top left corner, and clears what is below and to the right of it. */
const CLEAR_SCREEN = '\u001b[H\u001b[J'

export const status: Verb<StatusOptions> = {
  jsonHelp: 'print one JSON document on stdout; with --watch one per line, every second',

  define(command) {
    command.option('-w, --watch', 'print it again every second, until Ctrl+C')
    addConnectionOptions(command)
    command.addHelpText(
      'after',
      '\nRUNNING counts the calls of a host that do not wait for a timer or a fetch, and its limit; ISOLATES those that are entered, and all.' +
        '\nRUN DELAY is how long what could have run waited for a core. The exit code is 0 also if the server is not ready.',
    )
  },

  async run({ options: { watch: isWatching, ...options }, io, output }) {
    const client = connect(options, { io, output })
    if (!isWatching) {
      const info = await client.status()
      return output.answer(info, renderStatus(info, io.stdout))
    }
    const isTerminal = 'isTTY' in io.stdout && io.stdout.isTTY === true
    const show = async (): Promise<void> => {
      const info = await client.status()
      const text = renderStatus(info, io.stdout)
      output.line(info, isTerminal ? CLEAR_SCREEN + text : `${text}\n`)
    }
    await watch(show, WATCH_INTERVAL_MS, untilStopped())
  },
}
