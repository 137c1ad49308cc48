/**
 * Whether all is tried. `npm test` has a short form of what is long by nature: of variants of one thing, and of what is random,
 * it takes some. `npm run test:whole`, which `.ci/run` runs, takes all (`CARPOOL_TESTS=whole`).
 */
export const IS_WHOLE = process.env['CARPOOL_TESTS'] === 'whole'

/** How often something random is tried: as often as given in the whole form, and a share of that in the short one. */
export function runs(whole: number, shortShare = 1 / 4): number {
  return IS_WHOLE ? whole : Math.ceil(whole * shortShare)
}
