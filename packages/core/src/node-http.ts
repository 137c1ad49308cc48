/**
 * What Carpool uses of `node:http`. An `import` of that module reads everything that it exports, and so loads undici, whose
 * `WebSocket` is among it: 60 ms of CPU time and some megabytes in each process.
 */
export const { createServer, IncomingMessage, request, ServerResponse, STATUS_CODES, validateHeaderName, validateHeaderValue } =
  process.getBuiltinModule('node:http')
