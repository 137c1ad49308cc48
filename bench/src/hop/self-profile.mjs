/**
 * A CPU profile of the thread that makes it, taken from within, so that no port has to be open. Runs in processes without type
 * stripping.
 */
import { Session } from 'node:inspector/promises'

/** In µs. */
const SAMPLING_INTERVAL_US = 250
/** Code that a process got on its standard input. */
const WITHOUT_FILE = /\[(?:eval|stdin)\d*\]$/

export class SelfProfile {
  #session
  #cpuBefore

  async start() {
    this.#session = new Session()
    this.#session.connect()
    await this.#session.post('Profiler.enable')
    await this.#session.post('Profiler.setSamplingInterval', { interval: SAMPLING_INTERVAL_US })
    await this.#session.post('Profiler.start')
    this.#cpuBefore = process.threadCpuUsage()
  }

  async stop() {
    const session = this.#session
    const { user, system } = process.threadCpuUsage(this.#cpuBefore)
    const { profile } = await session.post('Profiler.stop')
    const sources = await this.#sourcesIn(profile)
    session.disconnect()
    return { profile, cpuUs: user + system, sources }
  }

  async #sourcesIn({ nodes }) {
    const frames = nodes.map(({ callFrame }) => callFrame)
    const ids = frames.filter(({ url, scriptId }) => scriptId !== '0' && WITHOUT_FILE.test(url)).map(({ scriptId }) => scriptId)
    const sources = {}
    if (ids.length === 0) return sources
    await this.#session.post('Debugger.enable')
    for (const scriptId of new Set(ids)) {
      const { scriptSource } = await this.#session.post('Debugger.getScriptSource', { scriptId })
      sources[scriptId] = scriptSource
    }
    await this.#session.post('Debugger.disable')
    return sources
  }
}
