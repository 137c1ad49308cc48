/** A compressor or decompressor that a library keeps; it goes when nothing refers to it any more. */
export interface Handle {
  readonly isHandle: never
}

type Run = (
  handle: Handle,
  input: Uint8Array,
  at: number,
  end: number,
  output: Uint8Array,
  outputAt: number,
  flush: number,
) => number

/** What `host/native/compression.cc` gives. A run takes a few kilobytes at most, and gives up to 64 KiB. */
export interface Natives {
  flateNew(deflates: boolean, level: number, windowBits: number, memLevel: number, strategy: number): Handle
  readonly flateRun: Run
  flateMessage(flate: Handle): string | undefined
  flateDictionary(flate: Handle, dictionary: Uint8Array): number
  flateReset(flate: Handle): number
  flateParams(flate: Handle, level: number, strategy: number): number
  /** @returns undefined if one of the parameters, each a number and its value, is not possible */
  brotliNew(encodes: boolean, parameters: Uint32Array): Handle | undefined
  readonly brotliRun: Run
  brotliMessage(brotli: Handle): string | undefined
  /** Of the next {@link CRC_SLICE} bytes. */
  crc(bytes: Uint8Array, at: number, value: number): number
}

export const CRC_SLICE = 512 * 1024

/** Given to the script of the library; see bundle.ts. */
declare const NATIVES: Natives

export const natives = NATIVES

/** What a run says in one number. */
export interface RunResult {
  readonly status: number
  readonly taken: number
  readonly given: number
}

const PART = 2 ** 20

export function unpackRun(packed: number): RunResult {
  const rest = Math.floor(packed / PART)
  return { given: packed % PART, taken: rest % PART, status: Math.floor(rest / PART) }
}
