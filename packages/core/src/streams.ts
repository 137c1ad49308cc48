/** How far a sender may be ahead of its receiver, in each direction of a stream, in bytes. */
export const STREAM_WINDOW_BYTES = 256 * 1024
/** Most bytes of one part of a stream. */
export const STREAM_PART_BYTES = 64 * 1024
/** What each message of a WebSocket counts in the window besides its bytes: empty ones are not free, however many come. */
export const STREAM_MESSAGE_BYTES = 128
