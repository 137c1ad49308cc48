/** Floods: what a function does without a pause, alone or by a WebSocket, harms nobody but itself. */
import t from 'tap'
import { FLOOD_CASES } from './cases/flood.ts'
import { WEB_SOCKET_CASES } from './cases/web-sockets.ts'
import { FORM } from './harness/form.ts'
import { runLists } from './harness/run-cases.ts'

t.setTimeout(FORM.fileMs)

t.test('floods', (t) => runLists(t, { 'calls of the host': FLOOD_CASES, 'WebSockets': WEB_SOCKET_CASES }))
