export {
  announceServer,
  findServers,
  type Announcement,
  type ServerAddress,
  type ServerAnnouncement,
} from './announcements.ts'
export { serverAt, serverFor } from './choose-server.ts'
export { readProcess, type ProcessReading } from './process-life.ts'
