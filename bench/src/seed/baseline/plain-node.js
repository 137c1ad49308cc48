/** One Node.js process that serves a handler: no isolation, no metering, nothing around it. `node plain-node.js <file>` */
import { createServer } from 'node:http'
import { answer, answerFailure, eventOf, listen, loadHandler } from './lambda-http.js'

const handler = loadHandler(process.argv[2])

listen(
  createServer((request, response) => {
    handler(eventOf(request), {}).then(
      (result) => answer(response, result),
      (error) => answerFailure(response, error),
    )
  }),
)
