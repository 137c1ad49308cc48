// What the tests of libraries import as `vitest`: its own runner, matchers and mocks, without its program, in Node.js and in
// functions.
import FakeTimers from '@sinonjs/fake-timers'
import {
  ASYMMETRIC_MATCHERS_OBJECT,
  getState,
  GLOBAL_EXPECT,
  JestAsymmetricMatchers,
  JestChaiExpect,
  JestExtend,
  setState,
} from '@vitest/expect'
import { format } from '@vitest/pretty-format'
import { afterAll, afterEach, beforeAll, beforeEach, describe, getCurrentTest, it, startTests, suite, test } from '@vitest/runner'
import { stripSnapshotIndentation } from '@vitest/snapshot'
import * as spies from '@vitest/spy'
import { setSafeTimers } from '@vitest/utils/timers'
import * as chai from 'chai'

const TEST_MS = 5_000

// Those of the runner, whatever tests put in their place.
setSafeTimers()
chai.use(JestExtend)
chai.use(JestChaiExpect)
chai.use(JestAsymmetricMatchers)

function matchText(assertion, value, snapshot) {
  const text = format(value, { escapeString: false, printBasicPrototype: false })
  const wanted = stripSnapshotIndentation(snapshot).replace(/^\n|\n$/g, '')
  assertion.assert(text === wanted, `expected ${text} to be ${wanted}`, `expected ${text} not to be it`, wanted, text)
}
chai.use(({ Assertion }, { flag, addMethod }) => {
  addMethod(Assertion.prototype, 'toMatchInlineSnapshot', function (snapshot) {
    matchText(this, flag(this, 'object'), snapshot)
  })
  addMethod(Assertion.prototype, 'toThrowErrorMatchingInlineSnapshot', function (snapshot) {
    matchText(this, flag(this, 'object'), snapshot)
  })
})

function expect(value, message) {
  setState({ assertionCalls: getState(expect).assertionCalls + 1 }, expect)
  const assertion = chai.expect(value, message)
  const running = getCurrentTest()
  return running === undefined ? assertion : assertion.withTest(running)
}
Object.assign(expect, chai.expect, globalThis[ASYMMETRIC_MATCHERS_OBJECT], {
  assert: chai.assert,
  extend: (matchers) => chai.expect.extend(expect, matchers),
  getState: () => getState(expect),
  setState: (state) => setState(state, expect),
  soft: (...args) => expect(...args),
  unreachable: (message) => chai.assert.fail(message ?? 'what should not be reached was'),
  assertions: (count) => setState({ expectedAssertionsNumber: count }, expect),
  hasAssertions: () => setState({ isExpectingAssertions: true }, expect),
})
setState({ assertionCalls: 0, isExpectingAssertions: false, expectedAssertionsNumber: null }, expect)
Object.defineProperty(globalThis, GLOBAL_EXPECT, { value: expect, writable: true, configurable: true })

/** Types are looked at by a compiler, not here: whatever is asked of one holds. */
const typeOf = () => new Proxy(() => typeOf(), { get: (_target, name) => (name === 'then' ? undefined : typeOf()) })

let clock
const globals = new Map()
const variables = new Map()
const NOT_FAKED = new Set(['nextTick', 'queueMicrotask'])

const vi = {
  fn: spies.fn,
  spyOn: spies.spyOn,
  isMockFunction: spies.isMockFunction,
  mocked: (mock) => mock,
  hoisted: (make) => make(),
  clearAllMocks: () => chained(spies.clearAllMocks),
  resetAllMocks: () => chained(spies.resetAllMocks),
  restoreAllMocks: () => chained(spies.restoreAllMocks),
  stubGlobal(name, value) {
    if (!globals.has(name)) globals.set(name, Object.getOwnPropertyDescriptor(globalThis, name))
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: true })
    return vi
  },
  unstubAllGlobals() {
    for (const [name, before] of globals) {
      if (before === undefined) Reflect.deleteProperty(globalThis, name)
      else Object.defineProperty(globalThis, name, before)
    }
    globals.clear()
    return vi
  },
  stubEnv(name, value) {
    if (!variables.has(name)) variables.set(name, process.env[name])
    if (value === undefined) delete process.env[name]
    else process.env[name] = String(value)
    return vi
  },
  unstubAllEnvs() {
    for (const [name, before] of variables) {
      if (before === undefined) delete process.env[name]
      else process.env[name] = before
    }
    variables.clear()
    return vi
  },
  useFakeTimers(options) {
    clock?.uninstall()
    const timers = FakeTimers.withGlobal(globalThis)
    const toFake = Object.keys(timers.timers).filter((name) => !NOT_FAKED.has(name))
    clock = timers.install({ now: Date.now(), toFake, ignoreMissingTimers: true, ...options })
    return vi
  },
  useRealTimers() {
    clock?.uninstall()
    clock = undefined
    return vi
  },
  isFakeTimers: () => clock !== undefined,
  setSystemTime: (time) => chained(() => clock.setSystemTime(time)),
  advanceTimersByTime: (ms) => chained(() => clock.tick(ms)),
  advanceTimersByTimeAsync: async (ms) => clock.tickAsync(ms),
  runAllTimers: () => chained(() => clock.runAll()),
  runAllTimersAsync: async () => clock.runAllAsync(),
}

function chained(step) {
  step()
  return vi
}

const CONFIG = {
  root: '/',
  name: '',
  setupFiles: [],
  passWithNoTests: true,
  allowOnly: true,
  sequence: { seed: 1, hooks: 'stack', setupFiles: 'list' },
  maxConcurrency: 5,
  testTimeout: TEST_MS,
  hookTimeout: TEST_MS,
  retry: 0,
  includeTaskLocation: false,
  tags: [],
  strictTags: false,
}
const FRESH = { assertionCalls: 0, isExpectingAssertions: false, expectedAssertionsNumber: null }

/**
 * Runs the tests of a file.
 * @param {string} file its name
 * @param {() => Promise<unknown>} load imports it
 * @returns {Promise<Record<string, string | true>>} by the name of a test: that it passed, or why not; skipped ones are not there
 */
export async function runFile(file, load) {
  const [task] = await startTests([file], {
    config: CONFIG,
    importFile: load,
    onBeforeTryTask: () => setState(FRESH, expect),
    onAfterTryTask() {
      const { assertionCalls, isExpectingAssertions, expectedAssertionsNumber: expected } = getState(expect)
      if (expected !== null && expected !== assertionCalls) throw new Error(`${assertionCalls} assertions instead of ${expected}`)
      if (isExpectingAssertions && assertionCalls === 0) throw new Error('no assertions')
    },
    extendTaskContext: (context) => Object.assign(context, { expect }),
  })
  const results = {}
  collect(task, '', results)
  vi.useRealTimers().unstubAllGlobals().unstubAllEnvs().restoreAllMocks()
  return results
}

function collect(task, prefix, results) {
  const problem = () => (task.result?.errors ?? []).map(({ message }) => message).join('; ')
  if (task.type === 'test') {
    if (task.result?.state === 'pass' || task.result?.state === 'fail') {
      let name = prefix
      while (Object.hasOwn(results, name)) name += ' again'
      results[name] = task.result.state === 'pass' || problem()
    }
    return
  }
  // A file that cannot be imported, or a hook that throws.
  if (task.result?.state === 'fail' && problem() !== '') results[`${prefix}(set-up)`] = problem()
  for (const child of task.tasks) collect(child, prefix === '' ? child.name : `${prefix} > ${child.name}`, results)
}

export const { assert } = chai
export {
  afterAll,
  afterEach,
  typeOf as assertType,
  beforeAll,
  beforeEach,
  chai,
  describe,
  expect,
  typeOf as expectTypeOf,
  it,
  suite,
  test,
  vi,
}
