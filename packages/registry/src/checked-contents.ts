import { CarpoolError } from '@carpool/core'
import type { RegistryOptions, StageInput } from './registry-types.ts'

/**
 * Code and source map as bytes.
 * @throws CarpoolError `bundle-empty`, `bundle-too-large`, with the size and its limit
 */
export function checkedContents(
  { functionName, code, sourceMap }: Pick<StageInput, 'functionName' | 'code' | 'sourceMap'>,
  { maxBundleBytes, maxSourceMapBytes = 4 * maxBundleBytes }: RegistryOptions,
): [code: Buffer, sourceMap: Buffer] {
  if (code.trim() === '') throw new CarpoolError('bundle-empty', `The bundle of ${functionName} is empty.`)
  const check = (what: string, text: string, limitBytes: number): Buffer => {
    const sizeBytes = Buffer.byteLength(text)
    if (sizeBytes <= limitBytes) return Buffer.from(text)
    throw new CarpoolError(
      'bundle-too-large',
      `The ${what} of ${functionName} has ${sizeBytes} bytes; the limit is ${limitBytes} bytes.`,
    )
  }
  return [check('bundle', code, maxBundleBytes), check('source map', sourceMap, maxSourceMapBytes)]
}
