export { announceServer, type Announcement, type ServerAnnouncement } from './announce-server.ts'
export { serverAt, serverFor } from './choose-server.ts'
export { findServers } from './find-servers.ts'
export type { ServerAddress } from './server-entry.ts'
