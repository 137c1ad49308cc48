/** Parts of the runtime that are no part of its core: a guest loads each when it first needs it. Files of `guest/libraries`. */
export const LIBRARIES = [
  'clone',
  'compression',
  'crypto',
  'encoding-streams',
  'encodings',
  'events',
  'files',
  'language',
  'messages',
  'performance',
  'streams',
  'url',
  'url-pattern',
  'web-assembly',
  'web-sockets',
] as const

export type LibraryName = (typeof LIBRARIES)[number]

/** What a library has in its scope that needs the addon's native functions. */
export const NATIVES_NAME = 'NATIVES'

/** What libraries find of the language under these names, whatever user code has made of the global object. */
export const INTRINSICS = [
  'Array',
  'Error',
  'Function',
  'Iterator',
  'JSON',
  'Map',
  'Math',
  'Number',
  'Object',
  'Promise',
  'RangeError',
  'Reflect',
  'RegExp',
  'Set',
  'String',
  'Symbol',
  'TypeError',
  'Uint8Array',
  'WeakMap',
] as const

/** What a library requires to get them. */
export const INTRINSICS_NUMBER = -1
