import { buildDeployment, type DeploymentOptions } from '@carpool/bundler'
import type { FSWatcher } from 'chokidar'
import { watch } from 'chokidar'
import { once } from 'node:events'
import { resolve } from 'node:path'
import type { ApiClient } from './api-client.ts'
import { coalesce } from './coalesce.ts'
import { deployedText } from './deployed-text.ts'
import { renderLogLine } from './log-text.ts'
import { describable, type Output } from './output.ts'
import type { Io } from './io.ts'
import { functionFolder, inputsOutside, isUninteresting } from './watched-paths.ts'
import type { FunctionInfo } from '@carpool/core'

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
