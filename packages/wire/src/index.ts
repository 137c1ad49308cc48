export { Connection, type ConnectionHandlers } from './connection.ts'
export { FrameReader, FrameWriter, NO_BODY, type Message, type OnMessage } from './frame.ts'
export type * from './messages.ts'
export { packUsage, unpackUsage, whole, type PackedUsage } from './usage.ts'
