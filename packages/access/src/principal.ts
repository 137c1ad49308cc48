import { CarpoolError, checkFunctionName, type TokenScope } from '@carpool/core'

/** Who asks: what the control plane knows of the bearer of a token. */
export interface Principal {
  /** Id of the token; {@link OPERATOR} for the one in the data folder. */
  readonly tokenId: string
  readonly owner: string
  readonly scopes: ReadonlySet<TokenScope>
}

/** In place of the id of a token: the token of the data folder. */
export const OPERATOR = 'operator'

/** Whether the principal sees what belongs to others, too. */
export function isAdmin({ scopes }: Principal): boolean {
  return scopes.has('admin')
}

/** @throws CarpoolError `forbidden`, naming the scope that is missing */
export function requireScope({ scopes }: Principal, scope: TokenScope): void {
  if (scopes.has(scope) || scopes.has('admin')) return
  throw new CarpoolError('forbidden', `This needs a token with the scope "${scope}"; this one has ${[...scopes].join(', ')}.`)
}

/** Who owns what is deployed without saying for whom: there is always an owner of this name. */
export const DEFAULT_OWNER = 'default'

/** Checks the name of an owner: the rule is that of the names of functions. @throws CarpoolError `invalid-name` */
export function checkOwnerName(name: string): string {
  try {
    return checkFunctionName(name)
  } catch (cause) {
    const detail = (cause as Error).message.replace('is no function name', 'is no name of an owner')
    throw new CarpoolError('invalid-name', detail, { cause })
  }
}
