import { USAGE_GROUPS, type UsageGroup } from '@carpool/core'
import { Option, type Command } from 'commander'

export interface GroupOption {
  readonly by?: UsageGroup
}

export function addGroupOption(command: Command, help: string): void {
  command.addOption(new Option('--by <group>', help).choices(USAGE_GROUPS))
}
