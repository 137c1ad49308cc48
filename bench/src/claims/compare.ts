import { verdictsOf, type BenchDocument, type Claim, type Figure, type Reading } from './claim.ts'
import type { StoredClaim } from './stored.ts'

/** `holds`: within noise of what it was, or new. `BROKEN`: a demand is not met, whatever it was before. */
export type Judgement = 'holds' | 'better' | 'WORSE' | 'BROKEN'

/** One row of the comparison: a figure of a claim, or a demand or aim of its bench that was not met. */
export interface Comparison {
  readonly claim: string
  readonly what: string
  readonly was: number | undefined
  readonly is: number | undefined
  readonly judgement: Judgement
  /** What else there is to say: the aim that was missed. */
  readonly note: string
}

/** Compares a claim with what was stored of it. Pure. @param isQuick looks only at what a short run can show */
export function compareClaim(
  claim: Claim,
  reading: Reading,
  document: BenchDocument,
  stored: StoredClaim | undefined,
  isQuick = false,
): Comparison[] {
  const pattern = isQuick ? claim.quick?.verdicts : claim.verdicts
  const names = isQuick ? new Set(claim.quick?.figures) : undefined
  const figures = Object.entries(reading.figures).filter(([name]) => names === undefined || names.has(name))
  const unmet = pattern === undefined ? [] : verdictsOf(document, pattern).filter(({ isMet }) => !isMet)
  return [
    ...figures.map(([what, figure]) => {
      const was = stored?.figures[what]
      return { claim: claim.name, what, was, is: figure.value, judgement: judge(figure, was), note: '' }
    }),
    ...unmet.map(({ kind, claim: what, detail }): Comparison => {
      const judgement = kind === 'demand' ? 'BROKEN' : 'holds'
      return {
        claim: claim.name,
        what,
        was: undefined,
        is: undefined,
        judgement,
        note: kind === 'demand' ? detail : `below the aim: ${detail}`,
      }
    }),
  ]
}

function judge({ value, better, noise, noiseBy = 0, atMost }: Figure, was: number | undefined): Judgement {
  if (Number.isNaN(value) || (atMost !== undefined && value > atMost)) return 'BROKEN'
  if (better === 'told' || was === undefined) return 'holds'
  const change = better === 'lower' ? value - was : was - value
  const allowed = Math.max(Math.abs(was) * noise, noiseBy)
  if (Math.abs(change) <= allowed) return 'holds'
  return change > 0 ? 'WORSE' : 'better'
}
