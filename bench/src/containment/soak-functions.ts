import type { FunctionLimits } from '@carpool/core'

/** A function of the soak. */
export interface SoakFunction {
  readonly name: string
  /** Body of its handler. */
  readonly body: string
  readonly limits?: Partial<FunctionLimits>
  /** What it answers; absent if that is not looked at. */
  readonly answer?: string
}

const pause = (ms: number): string => `await new Promise((resolve) => setTimeout(resolve, ${ms}))`

/** Those that behave, with so many of ten calls each; the neighbour takes what is left. */
export function goodFunctions(upstreamUrl: string): ReadonlyArray<SoakFunction & { readonly ofTen: number }> {
  return [
    { name: 'hello', ofTen: 4, body: `return new Response('hello')`, answer: 'hello' },
    { name: 'sleeper', ofTen: 2, body: `${pause(100)}; return new Response('slept')`, answer: 'slept' },
    { name: 'caller', ofTen: 1, body: `return new Response(await (await fetch('${upstreamUrl}')).text())`, answer: 'upstream' },
    {
      name: 'logger',
      ofTen: 1,
      body: `console.log('called', request.url); console.warn({ at: Date.now() }); return new Response('logged')`,
      answer: 'logged',
    },
  ]
}

/** Those that do not, and harm nobody's process. */
export const EVIL: readonly SoakFunction[] = [
  { name: 'endless', body: 'for (;;) {}', limits: { cpuMs: 200 } },
  { name: 'thrower', body: `throw new Error('no'.repeat(500))` },
  { name: 'eater', body: 'const a = []; for (;;) a.push({})', limits: { memoryMb: 64 } },
  { name: 'silent', body: 'return new Promise(() => {})', limits: { wallMs: 500 } },
  {
    name: 'log-flood',
    body: `for (let line = 0; line < 20_000; line++) console.log('flood '.repeat(20)); return new Response('logged')`,
  },
  {
    name: 'timer-flood',
    body: `for (let timer = 0; timer < 20_000; timer++) setTimeout(() => {}, timer % 500); return new Response('set')`,
  },
  {
    name: 'fetch-flood',
    body: `const all = Array.from({ length: 200 }, () => fetch('http://169.254.169.254/'))
      return new Response(String((await Promise.allSettled(all)).length))`,
  },
  { name: 'big', body: `return new Response('x'.repeat(4_000_000))` },
]

/** Its clients leave long before it answers. */
export const LEFT: SoakFunction = { name: 'waiter', body: `${pause(5_000)}; return new Response('waited')` }

/** Nothing can interrupt it: it takes its host process with it. */
export const STUCK: Pick<SoakFunction, 'body' | 'limits'> = {
  body: '[].includes.call({ length: 2 ** 53 - 1 }, 1)',
  limits: { cpuMs: 200 },
}
