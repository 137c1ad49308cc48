/** Floods of rejections, requests, headers and calls of functions by functions. */
import t from 'tap'
import { FLOOD_CLIENT_CASES, FLOOD_HOPS } from './cases/flood-clients.ts'
import { runCases } from './harness/run-cases.ts'
import { UPSTREAM_HOST } from './harness/upstream.ts'

// Where functions may fetch from, so that one can call itself.
const FLAGS = ['--host', UPSTREAM_HOST, '--max-hops', String(FLOOD_HOPS)]

t.test('floods of clients', (t) => runCases(t, FLOOD_CLIENT_CASES, { flags: FLAGS }))
