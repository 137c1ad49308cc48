import type { Verb } from './verb.ts'

interface VerbEntry {
  /** Name and arguments, as commander reads them. */
  readonly usage: string
  readonly summary: string
  /** Loads what the verb needs, so that no verb waits for another's imports. */
  readonly load: () => Promise<Verb>
}

export const VERBS: readonly VerbEntry[] = [
  {
    usage: 'serve',
    summary: 'run a server until it is stopped',
    load: async () => (await import('./commands/serve.ts')).serve,
  },
  {
    usage: 'dev <dir>',
    summary: 'serve one function and deploy it again on every change',
    load: async () => (await import('./commands/dev.ts')).dev,
  },
  {
    usage: 'status',
    summary: 'print how a server fares: its hosts, its queue, its latest scaling decisions',
    load: async () => (await import('./commands/status.ts')).status,
  },
  {
    usage: 'deploy <path>',
    summary: 'bundle a function and make it live',
    load: async () => (await import('./commands/deploy.ts')).deploy,
  },
  {
    usage: 'list',
    summary: 'list the deployed functions',
    load: async () => (await import('./commands/list.ts')).list,
  },
  {
    usage: 'invoke <name>',
    summary: 'call a function and print its answer',
    load: async () => (await import('./commands/invoke.ts')).invoke,
  },
  {
    usage: 'logs [name]',
    summary: 'print what functions logged',
    load: async () => (await import('./commands/logs.ts')).logs,
  },
  {
    usage: 'invocations [name]',
    summary: 'print what single calls came to and used',
    load: async () => (await import('./commands/invocations.ts')).invocations,
  },
  {
    usage: 'usage',
    summary: 'print what functions used: calls, CPU, time, memory, bytes',
    load: async () => (await import('./commands/usage.ts')).usage,
  },
  {
    usage: 'bill',
    summary: 'print what the same use would cost under the rate cards of others',
    load: async () => (await import('./commands/bill.ts')).bill,
  },
  {
    usage: 'delete <name>',
    summary: 'take a function down and forget it',
    load: async () => (await import('./commands/delete.ts')).deleteVerb,
  },
]
