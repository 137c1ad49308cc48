import type { CliCommand } from './command.ts'

interface CommandEntry {
  /** Name and arguments, as commander reads them. */
  readonly usage: string
  /** The name that stands before its own: `token` of `token list`. */
  readonly group?: keyof typeof COMMAND_GROUPS
  readonly summary: string
  /** Loads what the command needs, so that no command waits for another's imports. */
  readonly load: () => Promise<CliCommand>
}

/** Commands of two words, by the first one. */
export const COMMAND_GROUPS = {
  token: 'make, list and revoke tokens of the control plane',
  secret: 'set, list and delete secrets of functions',
} as const

export const COMMANDS: readonly CommandEntry[] = [
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
    usage: 'doctor',
    summary: 'check what a server would find on this machine: its sandbox, its folders and ports',
    load: async () => (await import('./commands/doctor.ts')).doctor,
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
    load: async () => (await import('./commands/function.ts')).list,
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
    load: async () => (await import('./commands/function.ts')).deleteFunction,
  },
  {
    usage: 'enable <name>',
    summary: 'take the calls of a function again that was disabled',
    load: async () => (await import('./commands/function.ts')).enable,
  },
  {
    usage: 'disable <name>',
    summary: 'refuse the calls of a function until it is enabled',
    load: async () => (await import('./commands/function.ts')).disable,
  },
  {
    group: 'secret',
    usage: 'set <function> <key>',
    summary: 'set a secret, from stdin or a prompt',
    load: async () => (await import('./commands/secret.ts')).secretSet,
  },
  {
    group: 'secret',
    usage: 'list <function>',
    summary: 'list the keys of the secrets of a function',
    load: async () => (await import('./commands/secret.ts')).secretList,
  },
  {
    group: 'secret',
    usage: 'delete <function> <key>',
    summary: 'delete a secret',
    load: async () => (await import('./commands/secret.ts')).secretDelete,
  },
  {
    group: 'token',
    usage: 'create',
    summary: 'make a token for an owner, and print it once',
    load: async () => (await import('./commands/token.ts')).tokenCreate,
  },
  {
    group: 'token',
    usage: 'list',
    summary: 'list the tokens',
    load: async () => (await import('./commands/token.ts')).tokenList,
  },
  {
    group: 'token',
    usage: 'revoke <id>',
    summary: 'make a token worthless at once',
    load: async () => (await import('./commands/token.ts')).tokenRevoke,
  },
  {
    usage: 'audit',
    summary: 'print the latest changes, and accesses that were refused',
    load: async () => (await import('./commands/audit.ts')).audit,
  },
]
