import type { CarpoolServer } from '../lib/carpool-server.ts'
import type { Caller } from '../lib/caller.ts'
import { sample, type Sample } from './samples.ts'

/** Warm calls after each evicted one; the two kinds come in turn, so that both see the same machine. */
const WARM_PER_EVICTED = 3

/** The server was started on functions that it has stored, and none of them has been called. */
export async function firstCalls(caller: Caller, urls: readonly string[]): Promise<Sample[]> {
  const samples: Sample[] = []
  // The first call of all also finds a host whose code has never run.
  for (const [index, url] of urls.entries()) samples.push(await sample(caller, url, index === 0 ? 'host-cold' : 'never-called'))
  return samples
}

/** The host keeps fewer isolates than there are functions: going round all of them, each call finds its isolate evicted. */
export async function evictedAndWarmCalls(caller: Caller, urls: readonly string[], rounds: number): Promise<Sample[]> {
  const samples: Sample[] = []
  for (let round = 0; round < rounds; round++) {
    for (const url of urls) {
      samples.push(await sample(caller, url, 'evicted'))
      for (let call = 0; call < WARM_PER_EVICTED; call++) samples.push(await sample(caller, url, 'warm'))
    }
  }
  return samples
}

const REPLACEMENT_TIMEOUT_MS = 10_000

/**
 * Kills the host process that takes calls and waits until the server knows: a call before that would be one that the host took
 * with it.
 */
export async function killHost(server: CarpoolServer): Promise<void> {
  const host = (await server.hosts()).find(({ state }) => state !== 'standby')
  if (host === undefined) throw new Error('The server has no host process.')
  process.kill(host.pid, 'SIGKILL')
  const deadline = performance.now() + REPLACEMENT_TIMEOUT_MS
  while ((await server.hosts()).some(({ pid }) => pid === host.pid)) {
    if (performance.now() > deadline) throw new Error(`The server still lists host ${host.pid}, which was killed.`)
  }
}
