/** A bench as a program that prints its results as JSON. */
export interface Bench {
  /** From the root of the repository. */
  readonly script: string
  readonly args?: readonly string[]
  /** Arguments of the shortest run that still shows something. */
  readonly quickArgs: readonly string[]
  /** Whether `--only` picks parts. */
  readonly hasParts?: boolean
  /** How long each form takes, in minutes, about. */
  readonly minutes: number
  readonly quickMinutes: number
  readonly needs: string
}

const QUIET = 'a machine with nothing else to do'
const NOTHING = 'nothing'

const ISOLATION: Bench = {
  script: 'test/isolation/run.ts',
  quickArgs: ['--form', 'quick'],
  minutes: 45,
  quickMinutes: 8,
  needs: `${QUIET}, bubblewrap`,
}

export type BenchName =
  | 'seed'
  | 'sleep'
  | 'cold'
  | 'deploy'
  | 'ledger'
  | 'metering'
  | 'scaling'
  | 'containment'
  | 'http'
  | 'isolation'
  | 'isolation-process'
  | 'records'
  | 'streams'
  | 'events'

/** In the order in which they run. */
export const BENCHES: Readonly<Record<BenchName, Bench>> = {
  seed: {
    script: 'bench/src/seed/demo.ts',
    quickArgs: ['--calls', '10', '--rounds', '1'],
    minutes: 3,
    quickMinutes: 0.5,
    needs: `${QUIET}, and memory for a hundred processes`,
  },
  sleep: { script: 'bench/src/sleep/main.ts', quickArgs: ['--rounds', '1'], minutes: 1, quickMinutes: 0.2, needs: QUIET },
  cold: {
    script: 'bench/src/cold/main.ts',
    quickArgs: ['--functions', '5', '--rounds', '2', '--restarts', '2'],
    minutes: 2,
    quickMinutes: 0.5,
    needs: QUIET,
  },
  deploy: {
    script: 'bench/src/deploy/main.ts',
    quickArgs: ['--deploys', '10', '--cli-deploys', '1', '--rate', '50'],
    minutes: 1,
    quickMinutes: 0.3,
    needs: QUIET,
  },
  ledger: {
    script: 'bench/src/ledger/main.ts',
    quickArgs: ['--times', '1'],
    minutes: 2,
    quickMinutes: 1,
    needs: QUIET,
  },
  metering: {
    script: 'bench/src/metering/main.ts',
    quickArgs: ['--seconds', '3', '--rounds', '1'],
    hasParts: true,
    minutes: 8,
    quickMinutes: 2,
    needs: `${QUIET}, and the repository's history`,
  },
  scaling: {
    script: 'bench/src/scaling/main.ts',
    quickArgs: ['--quick'],
    hasParts: true,
    minutes: 15,
    quickMinutes: 4,
    needs: `${QUIET} and two cores, promtool`,
  },
  containment: {
    script: 'bench/src/containment/main.ts',
    quickArgs: ['--quick'],
    hasParts: true,
    minutes: 25,
    quickMinutes: 6,
    needs: QUIET,
  },
  http: {
    script: 'bench/src/http/main.ts',
    quickArgs: ['--rounds', '1', '--seconds', '1', '--warm-up', '1'],
    minutes: 3,
    quickMinutes: 0.4,
    needs: QUIET,
  },
  'isolation': ISOLATION,
  'isolation-process': { ...ISOLATION, args: ['--neighbour', 'process'] },
  records: { script: 'bench/src/records/main.ts', quickArgs: ['--calls', '1500'], minutes: 1, quickMinutes: 0.3, needs: NOTHING },
  streams: {
    script: 'bench/src/streams/main.ts',
    args: ['--megabytes', '1024'],
    quickArgs: ['--megabytes', '16', '--rounds', '1'],
    minutes: 5,
    quickMinutes: 0.3,
    needs: QUIET,
  },
  events: {
    script: 'bench/src/events/main.ts',
    args: ['--rounds', '2', '--rest', '10'],
    quickArgs: ['--events', '50', '--clients', '200', '--rounds', '1', '--rest', '2'],
    minutes: 5,
    quickMinutes: 0.5,
    needs: QUIET,
  },
}

export const BENCH_NAMES = Object.keys(BENCHES) as readonly BenchName[]
