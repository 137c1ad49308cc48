import { dirname, sep } from 'node:path'
import type { ServerAddress } from './announcements.ts'

/** The server at a URL, which may be that of its data plane or of its control plane. Pure. */
export function serverAt(servers: readonly ServerAddress[], url: string): ServerAddress | undefined {
  return servers.find(({ adminUrl, url: dataUrl }) => isSameServer(adminUrl, url) || isSameServer(dataUrl, url))
}

/**
 * The server that is meant in a folder if nobody names one: the only one that there is; of several the one whose data folder lies
 * directly in the folder or in the nearest one above it, or has the folder in it. Nothing else counts, no port and no age. Pure.
 * @param folder absolute, without links
 * @returns undefined if there is none, or if the folder does not tell them apart
 */
export function serverFor(servers: readonly ServerAddress[], folder: string): ServerAddress | undefined {
  if (servers.length <= 1) return servers[0]
  const nearest = Math.max(...servers.map((server) => nearness(server, folder)))
  const candidates = servers.filter((server) => nearness(server, folder) === nearest)
  return nearest > 0 && candidates.length === 1 ? candidates[0] : undefined
}

/**
 * The length of the path of the folder by which a data folder is near; 0 if it is not. All such folders lie on the way to
 * `folder`, so of two the longer path is the nearer one.
 */
function nearness({ dataDir }: ServerAddress, folder: string): number {
  if (isWithin(folder, dataDir)) return dataDir.length
  const parent = dirname(dataDir)
  // What lies directly in the root is near to nobody: everything is below the root.
  return parent !== dirname(parent) && isWithin(folder, parent) ? parent.length : 0
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}

/** Names of this machine; a server that listens on all addresses is reached through any of them. */
const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]', '0.0.0.0', '[::]'])

/** Whether two URLs lead to the same server of this machine, however they spell it. */
function isSameServer(one: string, other: string): boolean {
  const normal = normalize(one)
  return normal !== undefined && normal === normalize(other)
}

function normalize(text: string): string | undefined {
  const url = URL.parse(text)
  if (url === null) return undefined
  const host = LOOPBACK_NAMES.has(url.hostname) ? 'loopback' : url.hostname
  return `${url.protocol}//${host}:${url.port}${url.pathname.replace(/\/+$/, '')}`
}
