import { fileURLToPath } from 'node:url'

/** The root folder of the checkout, with a slash at the end. */
export const REPOSITORY = new URL('../../../', import.meta.url)

export function repositoryPath(path: string): string {
  return fileURLToPath(new URL(path, REPOSITORY))
}
