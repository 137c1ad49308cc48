import { lookLike, takePlaceOf } from '../native-look.ts'
import { construct, dateToString, SafeDate, setHidden } from '../primordials.ts'
import { epochMs } from './clock.ts'

/**
 * Replaces `Date` by one that takes the time from the guest's clock and is the same in all else: called without arguments, `new Date()` and
 * `Date.now()` are what read a clock (ECMAScript, sections 21.4.2.1 and 21.4.3.1).
 */
export function installDate(target: object): void {
  function GuestDate(...args: unknown[]): unknown {
    if (new.target === undefined) return dateToString(new SafeDate(epochMs()))
    // For the most usual calls, which this makes several times faster.
    if (new.target === GuestDate) {
      if (args.length === 0) return new SafeDate(epochMs())
      if (args.length === 1) return new SafeDate(args[0] as number)
    }
    // The instance gets its prototype from the class that `new` was called on.
    return construct(SafeDate, args.length === 0 ? [epochMs()] : args, new.target)
  }
  const { now } = { now: (): number => epochMs() }
  takePlaceOf(GuestDate, SafeDate)
  setHidden(GuestDate, 'now', lookLike(now, SafeDate.now))
  setHidden(target, 'Date', GuestDate)
}
