export { announceServer, type Announcement, type ServerAnnouncement } from './announce-server.ts'
export { findServer } from './find-server.ts'
export type { ServerAddress } from './server-entry.ts'
