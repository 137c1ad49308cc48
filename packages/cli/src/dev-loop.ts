import { buildDeployment, type DeploymentOptions } from '@carpool/bundler'
import { CarpoolError, type FunctionInfo } from '@carpool/core'
import { type FSWatcher, watch } from 'chokidar'
import { once } from 'node:events'
import { realpathSync, statSync } from 'node:fs'
import { dirname, relative, resolve, sep } from 'node:path'
import type { ApiClient } from './api-client.ts'
import type { Io } from './command.ts'
import { renderLogLine } from './commands/logs.ts'
import { deployedText } from './deployment.ts'
import { describable, type Output } from './output.ts'

interface DevLoopParts {
  readonly path: string
  readonly options: DeploymentOptions
  readonly client: ApiClient
  readonly io: Io
  readonly output: Output
}

/** Deploys a function whenever its files change, and prints what it logs. */
export class DevLoop {
  readonly #parts: DevLoopParts
  readonly #folder: string
  readonly #deploy = coalesce(() => this.#tryDeploy())
  #watcher: FSWatcher | undefined
  /** Files of the last build; undefined if it failed, for then any file may be the one that mends it. */
  #inputs: ReadonlySet<string> | undefined
  #deployed: FunctionInfo | undefined
  #log: AbortController | undefined

  constructor(parts: DevLoopParts) {
    this.#parts = parts
    this.#folder = functionFolder(parts.path)
  }

  /** Deploys for the first time, and from then on after each change. @returns what is live; undefined if it does not build yet */
  async start(): Promise<FunctionInfo | undefined> {
    this.#watcher = watch(this.#folder, {
      ignoreInitial: true,
      ignored: (path) => isUninteresting(this.#folder, path),
      // Editors empty a file before they fill it: wait until it has come to rest.
      awaitWriteFinish: { stabilityThreshold: 50, pollInterval: 10 },
    })
    this.#watcher.on('error', (cause) => this.#parts.output.warn(describable(cause).message))
    await once(this.#watcher, 'ready')
    this.#watcher.on('all', (_, path) => {
      if (this.#inputs?.has(resolve(path)) ?? true) void this.#deploy()
    })
    await this.#deploy()
    return this.#deployed
  }

  async close(): Promise<void> {
    this.#log?.abort()
    await this.#watcher?.close()
  }

  async #tryDeploy(): Promise<void> {
    const { path, options, client, output } = this.#parts
    try {
      const { name, request, inputs } = await buildDeployment(path, options)
      this.#watcher?.add([...inputsOutside(this.#folder, inputs)])
      this.#inputs = new Set(inputs)
      const deployed = await client.deploy(name, request)
      output.note(deployedText(deployed))
      if (this.#deployed?.name !== name) this.#followLog(name)
      this.#deployed = deployed
    } catch (cause) {
      this.#inputs = undefined
      output.warn(describable(cause).message)
      if (this.#deployed !== undefined) output.note(`Revision ${this.#deployed.revision} of ${this.#deployed.name} stays live.`)
    }
  }

  #followLog(functionName: string): void {
    this.#log?.abort()
    this.#log = new AbortController()
    void this.#printLog(functionName, this.#log.signal)
  }

  async #printLog(functionName: string, signal: AbortSignal): Promise<void> {
    const { client, io, output } = this.#parts
    try {
      for await (const line of client.logs({ functionName, follow: true, signal })) {
        const text = renderLogLine(line, output.json ? io.stderr : io.stdout)
        if (output.json) output.note(text)
        else output.line(line, text)
      }
    } catch (cause) {
      if (!signal.aborted) output.warn(describable(cause).message)
    }
  }
}

/**
 * Turns a job into one that never runs twice at once: asked while it runs, it runs once more afterwards, however often it was
 * asked.
 * @param job must not reject
 * @returns asks for a run; resolves when the job rests
 */
export function coalesce(job: () => Promise<void>): () => Promise<void> {
  let wanted = false
  let running: Promise<void> | undefined
  const runWhileWanted = async (): Promise<void> => {
    while (wanted) {
      wanted = false
      await job()
    }
    running = undefined
  }
  return () => {
    wanted = true
    running ??= runWhileWanted()
    return running
  }
}

/** The folder of a function: the path itself, or the folder that its one file is in. @throws CarpoolError `entry-not-found` */
export function functionFolder(path: string): string {
  const absolute = resolve(path)
  const found = statSync(absolute, { throwIfNoEntry: false })
  if (found === undefined) throw new CarpoolError('entry-not-found', `There is no file or folder ${JSON.stringify(path)}.`)
  // As the bundler names its inputs.
  const real = realpathSync(absolute)
  return found.isFile() ? dirname(real) : real
}

/** Whether a path lies below the folder in `node_modules` or in something hidden, where nobody edits a function. */
export function isUninteresting(folder: string, path: string): boolean {
  return partsBelow(folder, path)?.some((part) => part === 'node_modules' || part.startsWith('.')) ?? false
}

/** The inputs of a bundle that are edited although they lie outside of the folder, such as other packages of a workspace. */
export function inputsOutside(folder: string, inputs: readonly string[]): readonly string[] {
  return inputs.filter((input) => partsBelow(folder, input) === undefined)
}

function partsBelow(folder: string, path: string): readonly string[] | undefined {
  const parts = relative(folder, path).split(sep)
  return parts[0] === '..' ? undefined : parts
}
