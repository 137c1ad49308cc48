import { toText } from '../../language/values.ts'
import { Event, type EventInit } from '../../web-api/events.ts'
import { asInterfaces } from '../interfaces.ts'

interface CloseEventInit extends EventInit {
  code?: unknown
  reason?: unknown
  wasClean?: unknown
}

export class CloseEvent extends Event {
  readonly #code: number
  readonly #reason: string
  readonly #wasClean: boolean

  constructor(type: unknown, init?: CloseEventInit | null) {
    if (arguments.length === 0) throw new TypeError('An event needs a type.')
    super(type, init)
    this.#code = Number(init?.code ?? 0) & 0xffff
    this.#reason = init?.reason === undefined ? '' : toText(init.reason)
    this.#wasClean = !!init?.wasClean
  }

  get code(): number {
    return this.#code
  }

  get reason(): string {
    return this.#reason
  }

  get wasClean(): boolean {
    return this.#wasClean
  }
}

asInterfaces({ CloseEvent })
