/** One instance behind process-per-call.js: takes one call at a time. */
import { loadHandler } from './lambda-http.js'

const handler = loadHandler(process.argv[2])

// Whoever started this process is gone, and nobody waits for an answer.
process.once('disconnect', () => process.exit(0))
process.on('message', (event) => {
  handler(event, {}).then(
    (result) => process.send({ result }),
    (error) => process.send({ failure: String(error) }),
  )
})
