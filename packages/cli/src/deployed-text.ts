import type { FunctionInfo } from '@carpool/core'

export function deployedText({ name, revision, codeBytes, url }: FunctionInfo): string {
  return `Deployed ${name}, revision ${revision}, ${Math.ceil(codeBytes / 1024)} KiB: ${url}`
}
