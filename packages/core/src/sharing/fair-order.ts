import { Heap, type Placed } from './heap.ts'

/** Whose share something is taken from. */
export interface Holder {
  /** Functions that belong to nobody have the owner '', and so share as if they had a common one. */
  readonly owner: string
  readonly functionName: string
}

/** The holder of what belongs to no function. */
export const NOBODY: Holder = { owner: '', functionName: '' }

export interface FairOrderOptions {
  /**
   * Whether what is short goes first: the order is then by where a flow would be after its next service, and not before it. Who
   * needs little does not wait for all who need much then, and gets no more than its share all the same. Default: no.
   */
  readonly isShortFirst?: boolean
  /** How far behind the others a flow begins that comes, or comes back, in units of cost: that it catches up on. Default: 0. */
  readonly headStart?: number
}

/** Who takes turns with others of its kind: an owner, or a function of one. */
class Party implements Placed {
  place = -1
  isWaiting = false
  /** The virtual time, in units of cost, at which its next service begins. */
  start = 0
  /** What that is expected to cost, where the order goes by it. */
  nextCost = 0
  /** Order of those that are equally far. */
  sequence = 0
}

/** What waits of one function. Whoever has an order keeps the entries in a class of its own that extends this. */
export class Flow extends Party implements Holder {
  readonly owner: string
  readonly functionName: string

  constructor({ owner, functionName }: Holder) {
    super()
    this.owner = owner
    this.functionName = functionName
  }
}

/** The flows of one owner. */
class OwnerFlows<F extends Flow> extends Party {
  readonly name: string
  readonly flows = new Map<string, F>()
  readonly turns: Turns<F>

  constructor(name: string, options: FairOrderOptions) {
    super()
    this.name = name
    this.turns = new Turns(options)
  }
}

/**
 * The order in which those who wait are served, fair first between owners and then between the functions of each, by what it
 * costs to serve them. It is start-time fair queueing (Goyal, Vin, Cheng: "Start-time Fair Queuing", SIGCOMM 1996), once for each
 * level: each party has a virtual time, which advances by the cost of its services, and who is least far is next. A party that
 * comes begins at the virtual time of its level, so that it neither pays for what it used while nobody else waited nor saves up
 * what it did not use. An owner who has one function is served as that function would be if there were no owners.
 *
 * Each operation takes O(log n); {@link first} as many steps as there are flows before the one that it finds.
 */
export class FairOrder<F extends Flow> {
  readonly #create: (holder: Holder) => F
  readonly #options: FairOrderOptions
  readonly #owners = new Map<string, OwnerFlows<F>>()
  #turns: Turns<OwnerFlows<F>>
  #waiting = 0
  #remembered = 0

  constructor(create: (holder: Holder) => F, options: FairOrderOptions = {}) {
    this.#create = create
    this.#options = options
    this.#turns = new Turns(options)
  }

  /** Flows that wait. */
  get waiting(): number {
    return this.#waiting
  }

  /** Flows that are kept: those that wait, and those without that virtual time has not passed yet. */
  get remembered(): number {
    return this.#remembered
  }

  find({ owner, functionName }: Holder): F | undefined {
    return this.#owners.get(owner)?.flows.get(functionName)
  }

  /** Owners with flows that wait, and the flows of each, in no order. */
  *waitingByOwner(): Generator<readonly F[]> {
    for (const { turns } of this.#turns.waiting.members) yield turns.waiting.members
  }

  /**
   * Something of the holder waits from now on. Does nothing for a flow that waits already.
   * @param nextCost what it is expected to cost, if short ones go first
   */
  wait(holder: Holder, nextCost = 0): F {
    const owner = this.#ownerOf(holder)
    const flow = this.#flowOf(owner, holder)
    if (flow.isWaiting) return flow
    this.#waiting++
    owner.turns.join(flow, nextCost)
    this.#follow(owner)
    return flow
  }

  /** What the flow waits for next costs something else than before. */
  expect(flow: F, nextCost: number): void {
    const owner = this.#ownerOf(flow)
    owner.turns.expect(flow, nextCost)
    this.#follow(owner)
  }

  /** Nothing of the flow waits any more. */
  rest(flow: F): void {
    if (!flow.isWaiting) return
    const owner = this.#ownerOf(flow)
    this.#waiting--
    owner.turns.rest(flow)
    this.#follow(owner)
    this.#forget(owner)
  }

  /**
   * The flow that is served next.
   * @param canRun called for one flow after the other, in the order, until it returns true
   */
  first(canRun?: (flow: F) => boolean): F | undefined {
    if (canRun === undefined) return this.#turns.waiting.first?.turns.waiting.first
    let found: F | undefined
    this.#turns.waiting.find(({ turns }) => (found = turns.waiting.find(canRun)) !== undefined)
    return found
  }

  /** Something of the holder has been served, or is about to be. */
  charge(holder: Holder, cost: number): void {
    const owner = this.#ownerOf(holder)
    const flow = this.#flowOf(owner, holder)
    owner.turns.charge(flow, cost)
    this.#turns.charge(owner, cost)
    this.#follow(owner)
    this.#forget(owner)
  }

  /**
   * What was charged before has cost so much more than that, or less if it is negative. For one that virtual time has passed
   * meanwhile, more counts from now on, and less is forgotten.
   */
  adjust(holder: Holder, difference: number): void {
    const owner = this.#ownerOf(holder)
    owner.turns.adjust(this.#flowOf(owner, holder), difference)
    this.#turns.adjust(owner, difference)
    this.#follow(owner)
    this.#forget(owner)
  }

  /** Forgets what everyone has had: where nobody waits, nobody is owed anything. */
  reset(): void {
    if (this.#remembered === 0) return
    this.#owners.clear()
    this.#turns = new Turns(this.#options)
    this.#waiting = this.#remembered = 0
  }

  #ownerOf({ owner: name }: Holder): OwnerFlows<F> {
    let owner = this.#owners.get(name)
    if (owner === undefined) {
      owner = new OwnerFlows(name, this.#options)
      this.#owners.set(name, owner)
      this.#turns.add(owner)
    }
    return owner
  }

  #flowOf({ flows, turns }: OwnerFlows<F>, holder: Holder): F {
    let flow = flows.get(holder.functionName)
    if (flow === undefined) {
      flow = this.#create(holder)
      flows.set(holder.functionName, flow)
      turns.add(flow)
      this.#remembered++
    }
    return flow
  }

  /** An owner waits as long as one of its functions does, for what that one waits for. */
  #follow(owner: OwnerFlows<F>): void {
    const { first } = owner.turns.waiting
    if (first === undefined) this.#turns.rest(owner)
    else if (owner.isWaiting) this.#turns.expect(owner, first.nextCost)
    else this.#turns.join(owner, first.nextCost)
  }

  /** A party that virtual time has passed would begin anew as it would go on. */
  #forget({ flows, turns }: OwnerFlows<F>): void {
    for (let passed = turns.takePassed(); passed !== undefined; passed = turns.takePassed()) {
      flows.delete(passed.functionName)
      this.#remembered--
    }
    for (let passed = this.#turns.takePassed(); passed !== undefined; passed = this.#turns.takePassed()) {
      this.#owners.delete(passed.name)
      this.#remembered -= passed.flows.size
    }
  }
}

/** Start-time fair queueing between parties of one level. */
class Turns<P extends Party> {
  readonly waiting: Heap<P>
  readonly #resting = new Heap<P>((one, other) => one.start < other.start)
  readonly #isShortFirst: boolean
  readonly #headStart: number
  #virtual = 0
  #lastSequence = 0

  constructor({ isShortFirst = false, headStart = 0 }: FairOrderOptions) {
    this.#isShortFirst = isShortFirst
    this.#headStart = headStart
    this.waiting = new Heap((one, other) => {
      const ahead = isShortFirst ? one.start + one.nextCost - other.start - other.nextCost : one.start - other.start
      return ahead < 0 || (ahead === 0 && one.sequence < other.sequence)
    })
  }

  /** Where a party begins that comes now. */
  get #entry(): number {
    return this.#virtual - this.#headStart
  }

  add(party: P): void {
    party.start = this.#entry
    this.#resting.add(party)
  }

  join(party: P, nextCost: number): void {
    this.#resting.remove(party)
    party.isWaiting = true
    party.start = Math.max(party.start, this.#entry)
    party.nextCost = nextCost
    party.sequence = ++this.#lastSequence
    this.waiting.add(party)
  }

  rest(party: P): void {
    if (!party.isWaiting) return
    this.waiting.remove(party)
    party.isWaiting = false
    this.#resting.add(party)
  }

  expect(party: P, nextCost: number): void {
    if (party.nextCost === nextCost) return
    party.nextCost = nextCost
    if (party.isWaiting) this.waiting.moved(party)
  }

  charge(party: P, cost: number): void {
    this.#virtual = Math.max(this.#virtual, party.start)
    // One that could not run for a while does not catch up on it, or it would hold up all others then. Where short ones go first,
    // one that waits for long was passed by those who were before it.
    const start = this.#isShortFirst ? party.start : Math.max(party.start, this.#entry)
    party.start = start
    party.sequence = ++this.#lastSequence
    this.adjust(party, cost)
  }

  adjust(party: P, difference: number): void {
    party.start += difference
    if (party.isWaiting) this.waiting.moved(party)
    else this.#resting.moved(party)
  }

  /** Takes out one that virtual time has passed and that does not wait; undefined if there is none. */
  takePassed(): P | undefined {
    const { first } = this.#resting
    if (first === undefined || first.start > this.#entry) return undefined
    this.#resting.remove(first)
    return first
  }
}
