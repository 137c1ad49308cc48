/**
 * Cases that the short form leaves out, to keep it short: each is a variant of one that is in both forms, and takes another path only inside V8.
 */
export const ONLY_FULL: ReadonlySet<string> = new Set(
  [
    'C01b C02b C04b C05b C05d C06b C06d C07b C07c C09c C09e C09f C14c C14f C14h C17d C17h C17j C22c C22d C22f C23d C23e',
    'C24b C24f C24g C24j C25a C25d C26e M19c M19g M19j M19n M19o',
    'E12b E12d E12e E12f E12g E12l E13d E26b E26c E26d E26g E26i E26m',
    'F01f F04b F04c M01b M01c M01f M01g M02e M03d M03e M03j M07b M16b M16d M16e',
    'M17a M17c M17d M17f M17i M17k M17m M17n M17o M17q M17s M17t M17u M17v M17w',
  ].flatMap((ids) => ids.split(' ')),
)
