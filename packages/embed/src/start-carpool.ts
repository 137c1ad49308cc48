import { DEFAULT_OWNER } from '@carpool/access'
import { buildDeployment, type DeploymentOptions } from '@carpool/bundler'
import { CarpoolError, type Revision } from '@carpool/core'
import type { GatewayOptions } from '@carpool/gateway'
import {
  listenForControl,
  openServer,
  resolveSettings,
  SETTINGS,
  type ListeningControlPlane,
  type OpenServer,
  type ServerSettings,
} from '@carpool/server'

/**
 * Those of `carpool serve`, but for its data plane's address, which is the business of the app. Defaults and units:
 * docs/settings.md.
 */
type EmbeddedSettings = Omit<ServerSettings, 'host' | 'port' | 'adminPort'>

/** What `startCarpool` takes. Neither the environment nor `carpool.server.json` is read. */
export interface CarpoolOptions extends Partial<EmbeddedSettings> {
  /**
   * Port of the control plane on 127.0.0.1, by which the `carpool` command deploys, reads logs and usage, and sets secrets; 0: a
   * free one. Default: there is no control plane.
   */
  readonly adminPort?: number
  /**
   * Address below which functions answer, without a slash at the end, such as `http://127.0.0.1:3000/functions`: what the control
   * plane tells of it. Default: `http://127.0.0.1`.
   */
  readonly url?: string
}

const DEFAULT_URL = 'http://127.0.0.1'

/** Checks the options, and fills in the defaults. @throws CarpoolError `invalid-setting`, naming the option */
function readOptions({ url = DEFAULT_URL, ...options }: CarpoolOptions): { settings: ServerSettings; url: string } {
  const values = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
  const unknown = Object.keys(values).find((name) => !isOption(name))
  if (unknown !== undefined) throw new CarpoolError('invalid-setting', `startCarpool has no option ${unknown}.`)
  if (!URL.canParse(url)) throw new CarpoolError('invalid-setting', `url must be an absolute URL, not ${JSON.stringify(url)}.`)
  const settings = resolveSettings({}, {}, { file: { path: 'the options of startCarpool', values } })
  return { settings, url: url.replace(/\/+$/, '') }
}

function isOption(name: string): boolean {
  return name !== 'host' && name !== 'port' && Object.hasOwn(SETTINGS, name)
}

/** A function host in this process. Functions run in host processes of their own, as with `carpool serve`. */
export interface Carpool {
  /** Has functions answer in an app: `app.register(carpoolGateway, { prefix: '/functions', ...carpool.gateway })`. */
  readonly gateway: GatewayOptions
  /** Address of the control plane, without a slash at the end; undefined: there is none. */
  readonly adminUrl: string | undefined
  /**
   * Bundles a function, smoke-tests it, and makes it live: the next call is answered by it. If it fails, what was live goes on
   * serving.
   * @param path a source file, or a folder with an entry and maybe a `carpool.config.ts`; relative to the working folder
   * @returns the live revision
   * @throws CarpoolError `entry-not-found`, `bundle-failed`, `no-handler`, `load-failed`, `invalid-config`, `invalid-name`,
   * `name-taken`, `bundle-too-large`, `bundle-empty`, `no-host`
   */
  deploy(path: string, options?: DeploymentOptions): Promise<Revision>
  /** Takes a function out of service, with its revisions and secrets. @throws CarpoolError `not-found` */
  remove(name: string): Promise<void>
  /**
   * Refuses new calls with `draining`, lets those under way end, for `graceMs` at most, and ends the host processes. Called
   * again, it waits for the same end. Close the app first, so that all its clients are answered.
   */
  close(): Promise<void>
}

/** How often it is looked whether calls are still under way, in ms. */
const IDLE_LOOK_MS = 20

/**
 * Starts a function host in this process, which must be Node.js 26. Resolves when its host processes are ready.
 * @throws CarpoolError `platform-unsupported`, `invalid-setting` of an option, `data-unusable` of the data folder,
 * `sandbox-unavailable` of a layer that is required
 */
export async function startCarpool(options: CarpoolOptions = {}): Promise<Carpool> {
  const { settings, url } = readOptions(options)
  const server = await openServer(settings)
  let control: ListeningControlPlane | undefined
  const end = async (): Promise<void> => {
    server.end('closed')
    await untilIdle(server, settings.graceMs)
    await control?.close()
    await server.close()
  }
  try {
    if (options.adminPort !== undefined)
      control = await listenForControl(server, { url, port: settings.adminPort, flag: 'adminPort' })
    await server.ready
  } catch (cause) {
    await end()
    throw cause
  }
  let ended: Promise<void> | undefined
  return {
    gateway: server.gateway,
    adminUrl: control?.adminUrl,
    deploy: async (path, deployment) => {
      const { name, request } = await buildDeployment(path, deployment)
      return server.deploy(name, DEFAULT_OWNER, request)
    },
    remove: (name) => server.remove(name, DEFAULT_OWNER),
    close: () => (ended ??= end()),
  }
}

async function untilIdle({ underWay }: OpenServer, limitMs: number): Promise<void> {
  const endsMs = performance.now() + limitMs
  while (underWay() > 0 && performance.now() < endsMs) await new Promise((resolve) => setTimeout(resolve, IDLE_LOOK_MS))
}
