/** `node:vm` in a function: code can be run in its own world, but no other world can be made. */
import { refuse } from './refuse.ts'

const run = globalThis.eval

class Script {
  readonly #code: string
  constructor(code: string) {
    this.#code = String(code)
  }
  runInThisContext(): unknown {
    // Indirect, so that it sees globals only.
    return run(this.#code)
  }
  runInNewContext(): never {
    return createContext() as never
  }
  runInContext(): never {
    return createContext() as never
  }
  createCachedData(): Uint8Array {
    return new Uint8Array()
  }
}

const refused = refuse('vm', 'it has one context, its own; vm.runInThisContext works', [
  'createContext',
  'measureMemory',
  'Module',
  'SourceTextModule',
  'SyntheticModule',
])
const createContext = (): unknown => refused['createContext']!()
const { measureMemory, Module, SourceTextModule, SyntheticModule } = refused
const createScript = (code: string): Script => new Script(code)
const runInThisContext = (code: string): unknown => new Script(code).runInThisContext()
const runInNewContext = createContext
const runInContext = createContext
const isContext = (): boolean => false
const compileFunction = (code: string, parameters: readonly string[] = []): unknown => new Function(...parameters, code)
const constants = {
  USE_MAIN_CONTEXT_DEFAULT_LOADER: Symbol('vm_dynamic_import_main_context_default'),
  DONT_CONTEXTIFY: Symbol('vm_context_no_contextify'),
}

export {
  compileFunction,
  constants,
  createContext,
  createScript,
  isContext,
  measureMemory,
  Module,
  runInContext,
  runInNewContext,
  runInThisContext,
  Script,
  SourceTextModule,
  SyntheticModule,
}
export default {
  compileFunction,
  constants,
  createContext,
  createScript,
  isContext,
  measureMemory,
  Module,
  runInContext,
  runInNewContext,
  runInThisContext,
  Script,
  SourceTextModule,
  SyntheticModule,
}
