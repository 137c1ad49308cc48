import { CarpoolError } from '@carpool/core'

export interface BodyBudgetLimits {
  /** Of one owner, in bytes. */
  readonly ownerBytes: number
  /** Of all together, in bytes. */
  readonly totalBytes: number
}

export interface BodyShare {
  readonly owner: string
  /** As announced: what is not sent yet may come at any time. */
  readonly bytes: number
  /** Counts, but is never refused: who shall stop the others must not wait for them. */
  readonly isAdmin: boolean
}

/**
 * Limits the bytes of bodies that are being received or worked on.
 * @returns takes a share of it and gives what returns the share, which is to be called once
 * @throws CarpoolError `saturated`, naming the limit
 */
export function bodyBudget({ ownerBytes, totalBytes }: BodyBudgetLimits): (share: BodyShare) => () => void {
  const byOwner = new Map<string, number>()
  let heldBytes = 0
  const add = (owner: string, bytes: number): void => {
    const ofOwner = (byOwner.get(owner) ?? 0) + bytes
    if (ofOwner === 0) byOwner.delete(owner)
    else byOwner.set(owner, ofOwner)
    heldBytes += bytes
  }
  return ({ owner, bytes, isAdmin }) => {
    if (!isAdmin && (byOwner.get(owner) ?? 0) + bytes > ownerBytes) {
      throw saturated(`The requests of ${owner} that are under way may have bodies of ${ownerBytes} bytes in all`)
    }
    if (!isAdmin && heldBytes + bytes > totalBytes) {
      throw saturated(`The requests that are under way may have bodies of ${totalBytes} bytes in all`)
    }
    add(owner, bytes)
    return () => add(owner, -bytes)
  }
}

function saturated(limit: string): CarpoolError {
  return new CarpoolError('saturated', `${limit}, which this one would exceed; try again soon.`)
}
