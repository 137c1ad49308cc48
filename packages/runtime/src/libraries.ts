/** Parts of the runtime that are no part of its core: a guest loads each when it first needs it. Files of `guest/libraries`. */
export const LIBRARIES = [
  'encoding-streams',
  'encodings',
  'events',
  'files',
  'language',
  'messages',
  'performance',
  'streams',
  'url-pattern',
] as const

export type LibraryName = (typeof LIBRARIES)[number]
