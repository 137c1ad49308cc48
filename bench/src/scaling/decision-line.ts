import type { ScalingDecisionInfo } from '@carpool/core'

/** A decision about the number of hosts, with the figures that led to it. */
export function decisionLine({ at, action, reason, hostsBefore, hostsAfter, figures }: ScalingDecisionInfo): string {
  const because = Object.entries(figures).map(([name, value]) => `${name} ${Math.round(value * 100) / 100}`)
  return `${at} ${action}, ${reason}: ${hostsBefore} to ${hostsAfter} hosts (${because.join(', ')})`
}

/** The newest last, one a line. */
export function decisionBlock(decisions: readonly ScalingDecisionInfo[]): string {
  return ['Decisions of the server:', ...(decisions.length === 0 ? ['none'] : decisions.map(decisionLine))].join('\n')
}
