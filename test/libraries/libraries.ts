/** The libraries whose own tests run in functions. `.ci/libraries` gets them. */
export interface Library {
  readonly name: string
  readonly isTest: RegExp
  /** Files of tests that ask for something that a function has not, or that is not part of the library: each with what it is. */
  readonly leftOut: Readonly<Record<string, string>>
}

const DOM = 'jsdom, a browser'
const MOCKED = 'replaced modules (vi.mock, vi.resetModules)'
const FILES = 'files of its repository'
const PROGRAM = 'esbuild, a program'

export const LIBRARIES: readonly Library[] = [
  {
    name: 'hono',
    isTest: /^src\/.*(?<!\.case)\.test\.tsx?$/,
    leftOut: {
      'src/jsx/components.test.tsx': DOM,
      'src/jsx/context-isolation.test.ts': MOCKED,
      'src/jsx/dom/client.test.tsx': DOM,
      'src/jsx/dom/components.test.tsx': DOM,
      'src/jsx/dom/context.test.tsx': DOM,
      'src/jsx/dom/css.test.tsx': DOM,
      'src/jsx/dom/hooks/index.test.tsx': DOM,
      'src/jsx/dom/index.test.tsx': DOM,
      'src/jsx/dom/intrinsic-element/components.test.tsx': DOM,
      'src/jsx/hooks/dom.test.tsx': DOM,
      'src/jsx/streaming.test.tsx': DOM,
      'src/utils/color.test.ts': PROGRAM,
    },
  },
  { name: 'itty-router', isTest: /^src\/.*\.spec\.ts$/, leftOut: {} },
  {
    name: 'h3',
    isTest: /^test\/(?!bench\/).*\.test\.ts$/,
    leftOut: {
      'test/dist.test.ts': FILES,
      'test/happydom.test.ts': 'happy-dom, a browser',
      'test/rules/encoding.test.ts': MOCKED,
      'test/rules/treeshake.test.ts': PROGRAM,
      'test/unit/cookie-perf.test.ts': MOCKED,
    },
  },
]
