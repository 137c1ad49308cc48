/** The addon's native functions by themselves, as user code could call them if it had them: with any arguments. */
import ivm from 'isolated-vm'
import { addon, nativeModule } from '../../src/addon.ts'
import '../../../test/support/own-exit.ts'

const core = addon.addScript('core', '(function () {})')
addon.addScript('natives', '(function (require, natives) { return natives })')

/** An isolate with the global `natives`. */
export function isolateWithNatives(memoryLimit = 64): { isolate: ivm.Isolate; context: ivm.Context } {
  const isolate = new ivm.Isolate({ memoryLimit })
  const context = isolate.createContextSync()
  const native = nativeModule.createSync(context)
  native.getSync('boot', { reference: true }).applySync(undefined, [core])
  context.global.setSync('library', native.getSync('library', { reference: true }).derefInto())
  context.evalSync('globalThis.natives = library(1)')
  return { isolate, context }
}
