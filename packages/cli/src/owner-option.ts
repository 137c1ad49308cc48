import type { Command } from 'commander'

export interface OwnerOption {
  readonly owner?: string
}

export function addOwnerOption(command: Command): void {
  command.option('--owner <owner>', 'for which owner; only with an admin token (default: the one of the token)')
}
