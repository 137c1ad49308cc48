import type { InProcessHost } from './in-process-host.ts'

/** What the built-in modules in a function's bundle use. */
export const PRELUDE = `const PLAIN = { isEncoding: () => true, from: (data, at, size) => typeof data === 'string' ? new TextEncoder().encode(data) : new Uint8Array(data, at, size) };
  const STREAM = function (options) {
    this.write = (bytes) => options.transform(bytes, undefined, (error) => { if (error) throw error })
    this.push = () => true
  };`

/** Calls beside it, which must be served as if nothing was. */
export async function isSound(host: InProcessHost): Promise<boolean> {
  host.load(
    'neighbour',
    `return new Response([...new Uint8Array(await crypto.subtle.digest('SHA-1', new Uint8Array(3)))].length)`,
  )
  return (await host.answerOf(host.invoke('neighbour'))) === '20'
}
