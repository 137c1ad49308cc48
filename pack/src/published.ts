/** A package as it is published. */
export interface Published {
  readonly name: string
  /** Folder of the workspace that it is made from: description, README and what its manifest says of binaries are there. */
  readonly source: string
  /**
   * What is bundled: names of files in `dist/`, without extension, with their sources. `index` is what an import of the package
   * gives.
   */
  readonly entries: Readonly<Record<string, string>>
  /** The Node.js that it runs on. */
  readonly engine: string
  /** The oldest Node.js or language version that the code is written for. */
  readonly target: string
  /** A server can be started by it, so it has what hosts are made of. */
  readonly hasServer: boolean
  /** Other files that it has at their places: folders and files in it, with where they come from. */
  readonly files?: Readonly<Record<string, string>>
}

/** Threads, which Node.js starts from files of their own. */
const THREADS = {
  'egress-thread': 'packages/egress/src/egress-thread.ts',
  'database-thread': 'packages/ledger/src/database-thread.ts',
  'check-thread': 'packages/ledger/src/check-thread.ts',
  'body-thread': 'packages/server/src/control-plane/body-thread.ts',
  'source-map-thread': 'packages/server/src/host-reports/source-map-thread.ts',
}

const SERVER_TARGET = 'node26'

export const PUBLISHED: readonly Published[] = [
  {
    name: '@carpool/sdk',
    source: 'sdk',
    entries: { index: 'sdk/src/index.ts' },
    engine: '>=20',
    target: 'es2022',
    hasServer: false,
  },
  {
    name: '@carpool/host',
    source: 'packages/embed',
    entries: { index: 'packages/embed/src/index.ts', ...THREADS },
    // The one that isolated-vm has binaries for.
    engine: '26',
    target: SERVER_TARGET,
    hasServer: true,
  },
  {
    name: 'carpool',
    source: 'packages/cli',
    entries: { index: 'packages/cli/src/index.ts', main: 'packages/cli/src/main.ts', ...THREADS },
    // The launcher's: it brings the one that the rest needs.
    engine: '>=20',
    target: SERVER_TARGET,
    hasServer: true,
    files: { bin: 'packages/cli/bin', cards: 'packages/billing/cards' },
  },
]
