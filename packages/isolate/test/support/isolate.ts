import type { Test } from 'tap'
import { Bootstrap, GuestIsolate, type GuestCallback } from '../../src/index.ts'

const BOOT = new Bootstrap(`(function boot(names, ...functions) {
  const bridge = Object.fromEntries(names.split(',').map((name, i) => [name, functions[i]]))
  globalThis.tell = bridge.tell
  globalThis.ask = bridge.question
  return {
    load(argument, factory) { bridge.tell(argument + ' ' + JSON.stringify(factory())) },
    value(source) { return (0, eval)(source) },
    run(source) { try { bridge.tell(String((0, eval)(source))) } catch (error) { bridge.tell('threw ' + error.message) } },
  }
})`)

export interface Rig {
  readonly isolate: GuestIsolate
  /** Waits for the next that the guest tells. */
  next(): Promise<string>
  /** What the guest has asked, each time waiting for the answer. */
  readonly asked: readonly number[]
}

/** An isolate that runs texts: the entry `run` tells what came of one, and `value` returns it. */
export async function isolateWith(t: Test, memoryLimitMb = 32): Promise<Rig> {
  const heard: string[] = []
  const asked: number[] = []
  let wake = (): void => {}
  const callbacks: Record<string, GuestCallback> = {
    tell: {
      blocking: false,
      call: (text: string) => {
        heard.push(text)
        wake()
        return undefined
      },
    },
    question: {
      blocking: true,
      call: (n: number) => {
        asked.push(n)
        return n * 6
      },
    },
  }
  const isolate = await GuestIsolate.create({
    bootstrap: BOOT,
    entryNames: ['load', 'value', 'run'],
    callbacks,
    memoryLimitMb,
    onCatastrophe: (reason) => t.fail(reason),
  })
  t.teardown(() => isolate.dispose())
  const next = async (): Promise<string> => {
    while (heard.length === 0) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    return heard.shift() ?? ''
  }
  return { isolate, next, asked }
}
