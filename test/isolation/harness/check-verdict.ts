import type { Test } from 'tap'
import { shown, type Answer } from './call.ts'
import type { IsolationCase, Verdict } from './isolation-case.ts'

/** Codes of an invocation that ends so, unless the case says which. */
const CODES: Readonly<Record<Verdict, RegExp>> = {
  OK: /^$/,
  R: /^$/,
  E: /^(?:exception|invalid-response)$/,
  K: /^(?:cpu-exceeded|timeout|memory-exceeded|isolate-lost)$/,
  P: /^(?:host-lost|timeout|cpu-exceeded|memory-exceeded)$/,
}

/** Most answers that a failure shows. */
const SHOWN = 3

/** Checks that the answers are those of the verdict. @returns whether they are */
export function checkAnswers(t: Test, { verdict, expect = {} }: IsolationCase, answers: readonly Answer[]): boolean {
  const isAnswered = verdict === 'OK' || verdict === 'R'
  const { code = CODES[verdict], body } = expect
  const status = expect.status ?? (isAnswered && expect.code === undefined ? 200 : undefined)
  const isWrong = (answer: Answer): boolean =>
    (status !== undefined && status !== answer.status) || !matches(answer.code, code) || !matches(answer.text, body)
  const wrong = answers.filter(isWrong)
  const wanted = `${status ?? ''} ${String(code)} ${String(body ?? '')}`
  t.strictSame(wrong.slice(0, SHOWN).map(shown), [], `${wrong.length} of ${answers.length} were not answered: ${wanted}`)
  if (answers.length === 0) t.fail('nothing was answered')
  return wrong.length === 0
}

function matches(text: string, expected: string | RegExp | undefined): boolean {
  if (expected === undefined) return true
  return typeof expected === 'string' ? text === expected : expected.test(text)
}
