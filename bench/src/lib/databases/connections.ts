import { readFileSync } from 'node:fs'

const ESTABLISHED = '01'

/** Connections to a port of this machine's 127.0.0.1, as Linux has them on the side of who connects. */
export function connectionsTo(port: number): number {
  const peer = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const rows = readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1)
  return rows.map((row) => row.trim().split(/\s+/)).filter((row) => row[2] === peer && row[3] === ESTABLISHED).length
}

/** The most connections that were seen while something ran, looked for every few ms. */
export async function mostConnectionsTo<T>(port: number, run: () => Promise<T>): Promise<readonly [result: T, most: number]> {
  let most = 0
  const timer = setInterval(() => (most = Math.max(most, connectionsTo(port))), 20)
  try {
    return [await run(), most]
  } finally {
    clearInterval(timer)
  }
}
