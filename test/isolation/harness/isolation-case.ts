import type { FunctionLimits } from '@carpool/core'
import type { Test } from 'tap'
import type { LedgerRow } from '../../support/ledger.ts'
import type { Files } from '../../support/server.ts'
import type { Answer } from './call.ts'
import type { Rig } from './rig.ts'

export type Group = 'escape' | 'CPU' | 'memory' | 'flood' | 'network' | 'gateway' | 'lifecycle' | 'billing' | 'platform'

/**
 * - `OK`: a normal answer.
 * - `R`: what was tried is refused, and the invocation goes on to a normal answer.
 * - `E`: the invocation fails, and its isolate lives.
 * - `K`: the isolate is killed, and the host lives.
 * - `P`: the host is poisoned or lost, and replaced.
 */
export type Verdict = 'OK' | 'R' | 'E' | 'K' | 'P'

/**
 * What the invocation is billed: `full` what was measured, which is more than nothing; `cap` the same up to its CPU limit and
 * the grace; `heartbeat` what was last seen before the host went; `none` nothing.
 */
export type Billed = 'full' | 'cap' | 'heartbeat' | 'none'

/** What an attack did. */
export interface Attacked {
  /** Answers of the attacked function, which the verdict is about. */
  readonly answers: readonly Answer[]
}

export interface Aftermath {
  /** Of the attacked function. */
  readonly records: readonly LedgerRow[]
  /** How much more memory than before the host had at its peak, in MiB; undefined where that cannot be known. */
  readonly growthMb: number | undefined
}

export interface CaseContext {
  readonly t: Test
  readonly rig: Rig
  /** Name of the function under attack. */
  readonly name: string
  /** Calls it. The path has a slash in front. */
  call(path?: string, init?: RequestInit): Promise<Answer>
}

/** One attack: what is deployed, what is done with it, and what must come of it. */
export interface IsolationCase {
  /** As in the list of attacks, with a letter if a row of it is several: `C06a`. */
  readonly id: string
  readonly group: Group
  /** What is done, for the table: a short sentence without a full stop. */
  readonly title: string
  readonly verdict: Verdict
  /** A `K` that V8 may take longer over than the grace, by the speed of the machine: then it is a `P`. */
  readonly mayPoison?: boolean
  readonly billed: Billed
  /** Code of the module scope. */
  readonly scope?: string
  /**
   * Body of `async fetch(request, env, ctx)`. The runner puts it into a module that answers `/again` by itself, with the number
   * of calls that this isolate has seen.
   */
  readonly handler?: string
  /**
   * A whole script in place of scope and handler: it evaluates to a factory. It has to answer `/again` itself, unless `again`
   * is `skipped`.
   */
  readonly script?: string
  /** Files in place of all these: deployed through the command, which bundles them. */
  readonly files?: Files | string
  readonly limits?: Partial<FunctionLimits>
  /** Besides `UPSTREAM`, `CANARY` and `SELF`, the address of the function: URLs with a slash at the end. */
  readonly env?: Readonly<Record<string, string>>
  /** The attack is the deploy, and it is refused so. Nothing is called then. */
  readonly refused?: { readonly status: number; readonly code: string | RegExp; readonly detail?: RegExp }
  /**
   * Default: 200 and no code for `OK` and `R`, the codes that go with the verdict for the others. A body is compared as a
   * whole.
   */
  readonly expect?: { readonly status?: number; readonly code?: string | RegExp; readonly body?: string | RegExp }
  /** Default: one GET of `/`. */
  readonly request?: RequestInit & { readonly path?: string }
  /** What is done, if it is more than one call. */
  readonly attack?: (context: CaseContext) => Promise<Attacked>
  /** More to check, of what was answered and recorded. */
  readonly check?: (context: CaseContext, outcome: Attacked & Aftermath) => unknown
  /**
   * The next call, which must be answered: `fresh` by a new isolate, the default for `K` and `P`; `same` by the isolate that
   * was there, the default for the others; `any`; or `skipped` where the function spoils its own isolate.
   */
  readonly again?: 'fresh' | 'same' | 'any' | 'skipped'
  /** What it left behind would go on and disturb the next case, so the runner has it ended. */
  readonly leavesWork?: boolean
  /** Texts of the host that the function writes by itself. */
  readonly mayShow?: RegExp
  /** The attack can be repeated within a form that measures. Default: unless it is a `P`. */
  readonly isRepeatable?: boolean
  /** It is deployed also in the short form, so that its first call comes to an isolate that is up. */
  readonly isDeployed?: boolean
  /** Why the case does not run here, as a sentence. */
  readonly skip?: string
}
