/**
 * The baselines are plain JavaScript, so that they do not pay the 17 MB and 25 ms per process that Node.js takes for stripping types.
 */
import { createRequire } from 'node:module'

/** Loads a Lambda handler from a CommonJS file, as Lambda does. */
export function loadHandler(file) {
  return createRequire(import.meta.url)(file).handler
}

/** What a handler reads of an API Gateway v2 event. */
export function eventOf(request) {
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath: request.url,
    rawQueryString: '',
    headers: request.headers,
    requestContext: { http: { method: request.method, path: request.url } },
    isBase64Encoded: false,
  }
}

/** Answers with what a handler returned. */
export function answer(response, { statusCode = 200, headers = {}, body = '' }) {
  response.writeHead(statusCode, headers).end(body)
}

/** Answers that the handler failed. */
export function answerFailure(response, reason) {
  response.writeHead(500, { 'content-type': 'text/plain' }).end(String(reason))
}

/** Listens on a free port and says so in one line of JSON. */
export function listen(server) {
  server.listen({ host: '127.0.0.1', port: 0, backlog: 4096 }, () => {
    console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}` }))
  })
  process.once('SIGTERM', () => process.exit(0))
}
