import { CarpoolError } from '@carpool/core'
import { resolveSettings, SETTINGS, type ServerSettings } from '@carpool/server'

/** Those of `carpool serve`, but for its data plane's address, which is the business of the app. Defaults and units: docs/settings.md. */
type EmbeddedSettings = Omit<ServerSettings, 'host' | 'port' | 'adminPort'>

/** What `startCarpool` takes. Neither the environment nor `carpool.server.json` is read. */
export interface CarpoolOptions extends Partial<EmbeddedSettings> {
  /**
   * Port of the control plane on 127.0.0.1, by which the `carpool` command deploys, reads logs and usage, and sets secrets; 0: a free one.
   * Default: there is no control plane.
   */
  readonly adminPort?: number
  /**
   * Address below which functions answer, without a slash at the end, such as `http://127.0.0.1:3000/functions`: what the control plane tells of
   * it. Default: `http://127.0.0.1`.
   */
  readonly url?: string
}

const DEFAULT_URL = 'http://127.0.0.1'

export interface EmbeddedOptions {
  readonly settings: ServerSettings
  /** Undefined: there is to be no control plane. */
  readonly adminPort: number | undefined
  readonly url: string
}

/** Checks the options, and fills in the defaults. @throws CarpoolError `invalid-setting`, naming the option */
export function readOptions({ url = DEFAULT_URL, ...options }: CarpoolOptions): EmbeddedOptions {
  const values = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
  const unknown = Object.keys(values).find((name) => !isOption(name))
  if (unknown !== undefined) throw new CarpoolError('invalid-setting', `startCarpool has no option ${unknown}.`)
  if (!URL.canParse(url)) throw new CarpoolError('invalid-setting', `url must be an absolute URL, not ${JSON.stringify(url)}.`)
  const settings = resolveSettings({}, {}, { file: { path: 'the options of startCarpool', values } })
  return { settings, adminPort: options.adminPort === undefined ? undefined : settings.adminPort, url: url.replace(/\/+$/, '') }
}

function isOption(name: string): boolean {
  return name !== 'host' && name !== 'port' && Object.hasOwn(SETTINGS, name)
}
