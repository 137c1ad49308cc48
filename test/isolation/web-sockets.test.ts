/** WebSockets that harm nobody but themselves. */
import t from 'tap'
import { WEB_SOCKET_CASES } from './cases/web-sockets.ts'
import { runCases } from './harness/run-cases.ts'

t.test('WebSockets', (t) => runCases(t, WEB_SOCKET_CASES))
