/** Much memory by one step of a function, which V8 neither refuses nor interrupts. */
import { HOST_MEMORY } from '@carpool/core'
import type { IsolationCase } from '../harness/isolation-case.ts'

const MEBIBYTE = 1024 * 1024
const LIMITS = { memoryMb: 32, cpuMs: 5_000, wallMs: 20_000 }
/** What is no memory of the isolate: blank isolates that take its place, code of Node.js on first use, what collections move. */
const BESIDES_MB = 96
/** What a host may take more than before while an isolate of such a limit takes all it can: what SECURITY.md promises. */
export const mostMb = (limitMb: number): number => limitMb + HOST_MEMORY.stockBytes / MEBIBYTE + BESIDES_MB

/** Takes at most what all isolates together may have beyond their limits. What it keeps ends its isolate, or the host. */
function atOnce(id: string, title: string, handler: string, more: Partial<IsolationCase> = {}): IsolationCase {
  const most = mostMb(more.limits?.memoryMb ?? LIMITS.memoryMb)
  return {
    id,
    group: 'memory',
    title,
    verdict: 'K',
    billed: 'full',
    mayPoison: true,
    again: 'any',
    limits: LIMITS,
    expect: { status: 502, code: 'memory-exceeded' },
    handler: `${handler}; globalThis.kept = kept; return new Response('kept ' + kept.length)`,
    isRepeatable: false,
    check: ({ t }, { growthMb = 0 }) => {
      t.ok(growthMb < most, `the host took ${Math.round(growthMb)} MiB more at most`)
    },
    ...more,
  }
}

/** A text of so many units, of two bytes each, that is yet to be made flat. */
const ropeOf = (units: number): string => `let kept = '\\u1234'; while (kept.length < ${units}) kept += kept`

export const AT_ONCE_CASES: readonly IsolationCase[] = [
  {
    ...atOnce('M18', 'a text of 64 MB within its limit, on whose record it is', `${ropeOf(2 ** 25)}; kept.charCodeAt(5)`),
    verdict: 'OK',
    again: 'same',
    limits: { ...LIMITS, memoryMb: 256 },
    expect: { status: 200 },
    check: ({ t }, { records }) => {
      const [peakKb] = records.map((record) => Number(record['memory_peak_kb']))
      t.ok(peakKb! > 64 * 1024, `${peakKb} KiB at most`)
    },
  },
  ...[8, 32, 128].map((memoryMb, index) =>
    atOnce(
      `M17${'abc'[index]}`,
      `a text of half a gigabyte made flat, under ${memoryMb} MiB`,
      `${ropeOf(2 ** 28)}; kept.charCodeAt(5)`,
      {
        limits: { ...LIMITS, memoryMb },
      },
    ),
  ),
  atOnce('M17d', 'a text of 128 MB made flat, and kept', `${ropeOf(2 ** 26)}; kept.charCodeAt(5)`),
  atOnce('M17e', 'a text of half a gigabyte of one letter', `const kept = 'x'.repeat(2 ** 29 - 100); kept.charCodeAt(5)`),
  atOnce('M17f', 'an array of thirty million, filled', 'const kept = new Array(3e7).fill(0)'),
  atOnce('M17g', 'an array of a hundred million, filled', 'const kept = new Array(1e8).fill(0)'),
  atOnce(
    'M17h',
    'a number of half a gigabit',
    'const kept = [1n << (2n ** 29n)]; for (let i = 0; i < 8; i++) kept.push(kept[i] + 1n)',
  ),
  atOnce(
    'M17i',
    'numbers of many digits, multiplied',
    'let kept = 3n ** 1000000n; for (let i = 0; i < 10; i++) kept *= kept; kept.length = 1',
    {
      expect: { code: /^(?:memory-exceeded|cpu-exceeded|exception|)$/ },
    },
  ),
  atOnce('M17j', 'one text 500 times as JSON', `const one = 'x'.repeat(1e6); const kept = JSON.stringify(Array(500).fill(one))`, {
    expect: { code: /^(?:memory-exceeded|exception|)$/ },
  }),
  atOnce('M17k', 'JSON of many small arrays', `const kept = JSON.parse('[' + '[],'.repeat(4e6) + '[]]')`),
  atOnce('M17l', 'a text that grows when it is normalized', `const kept = '\\ufdfa'.repeat(1e7).normalize('NFKD')`, {
    expect: { code: /^(?:memory-exceeded|exception|)$/ },
  }),
  atOnce(
    'M17m',
    'a long text of many digits for the reader',
    `const kept = new Intl.NumberFormat('de').format(10n ** 2000000n)`,
    {
      expect: { code: /^(?:memory-exceeded|cpu-exceeded|exception|)$/ },
    },
  ),
  atOnce('M17n', 'a Map of ten million from one array', 'const kept = new Map(Array.from({ length: 1e7 }, (_, i) => [i, i]))'),
  atOnce(
    'M17o',
    'a pattern of many alternatives',
    `const kept = new RegExp(Array.from({ length: 2e5 }, (_, i) => 'a' + i + '.*').join('|')).exec('b'.repeat(1e3))`,
    {
      expect: { code: /^(?:memory-exceeded|cpu-exceeded|exception|)$/ },
    },
  ),
  atOnce(
    'M17p',
    'a sorted copy of a long array',
    'const kept = new Array(2e6).fill(0.5).map((x, i) => x * i).toSorted().concat(new Array(2e7).fill(1))',
  ),
  atOnce('M17q', 'a long array joined', `const kept = new Array(2e6).fill('x'.repeat(200)).join('y')`),
  atOnce(
    'M17r',
    'a clone of a long text, many times',
    `const one = 'x'.repeat(1e6)
     const kept = structuredClone(Array.from({ length: 300 }, (_, i) => one + i).map((s) => (s.charCodeAt(9), s)))`,
  ),
  atOnce(
    'M17s',
    'a text put together from parts of itself',
    `const kept = 'x'.repeat(1e6).replaceAll('x', 'y'.repeat(300)); kept.charCodeAt(5)`,
  ),
  atOnce('M17t', 'code of ten megabytes', `const kept = [new Function('return [' + '1,'.repeat(2e6) + ']')()]`, {
    limits: { ...LIMITS, memoryMb: 128 },
    expect: { code: /^(?:memory-exceeded|exception|)$/ },
  }),
  atOnce('M17u', 'half a million matches of one pattern', `const kept = [...'ab'.repeat(3e6).matchAll(/a(b)/g)]`),
  atOnce('M17v', 'a long text in large letters of its place', `const kept = '\\u00df'.repeat(1.5e7).toLocaleUpperCase('de')`, {
    expect: { code: /^(?:memory-exceeded|exception|)$/ },
  }),
  atOnce('M17w', 'a long text escaped', `const kept = encodeURIComponent('\\u1234'.repeat(1e7))`, {
    expect: { code: /^(?:memory-exceeded|exception|)$/ },
  }),
]
