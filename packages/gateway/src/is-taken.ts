import type { ServerResponse } from 'node:http'

/** Whether the system has taken all of an answer, so that nothing of it is left in memory here; `finish` is told in a later turn. */
export function isTaken(response: ServerResponse): boolean {
  return response.writableEnded && response.writableLength === 0
}
