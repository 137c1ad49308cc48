import { CarpoolError } from '@carpool/core'

/** Changes of the functions of one owner that may wait. */
const MAX_WAITING = 20

interface Turn {
  readonly functionName: string
  readonly owner: string
  /** Comes before those that are not, however many wait, and is not counted with them. Default: false. */
  readonly isUrgent?: boolean
}

/** Runs work when it is its turn. @throws CarpoolError `saturated` if too many wait */
type InTurn = <T>(turn: Turn, work: () => Promise<T>) => Promise<T>

interface Queue {
  readonly urgent: Array<() => void>
  readonly others: Array<() => void>
}

/**
 * One change at a time for each name, in the order in which they came. What waits holds a body in memory, so an owner has not
 * many that do; it is not counted by name, so that nobody is refused because of what others want to do under the name.
 */
export function deployTurns(maxWaiting = MAX_WAITING): InTurn {
  /** Of the names of which something changes at this moment. */
  const queues = new Map<string, Queue>()
  /** How many changes of an owner are under way or wait. */
  const underWay = new Map<string, number>()

  const enter = async ({ functionName, isUrgent = false }: Turn): Promise<void> => {
    const queue = queues.get(functionName)
    if (queue === undefined) {
      queues.set(functionName, { urgent: [], others: [] })
      return
    }
    await new Promise<void>((resolve) => (isUrgent ? queue.urgent : queue.others).push(resolve))
  }
  const leave = (functionName: string): void => {
    const queue = queues.get(functionName)
    const next = queue?.urgent.shift() ?? queue?.others.shift()
    // The turn goes straight to the next, so that nobody who comes now gets in before.
    if (next === undefined) queues.delete(functionName)
    else next()
  }
  return async (turn, work) => {
    const { functionName, owner, isUrgent = false } = turn
    const count = underWay.get(owner) ?? 0
    // One is at work.
    if (!isUrgent && count > maxWaiting) throw saturated(owner, maxWaiting)
    if (!isUrgent) underWay.set(owner, count + 1)
    try {
      await enter(turn)
      try {
        return await work()
      } finally {
        leave(functionName)
      }
    } finally {
      if (!isUrgent) decrement(underWay, owner)
    }
  }
}

function decrement(counts: Map<string, number>, key: string): void {
  const count = (counts.get(key) ?? 0) - 1
  if (count > 0) counts.set(key, count)
  else counts.delete(key)
}

function saturated(owner: string, maxWaiting: number): CarpoolError {
  return new CarpoolError(
    'saturated',
    `${maxWaiting} deploys of ${owner} wait, which is the limit; try again when some are done.`,
  )
}
