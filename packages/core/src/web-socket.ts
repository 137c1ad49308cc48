/**
 * A WebSocket as the stages of a call pass it on: its caller has one end, the connection with the host that of the function. In
 * each direction no more bytes are under way than the window of a stream; each message counts STREAM_MESSAGE_BYTES besides its
 * own.
 */

export type MessageKind = 'text' | 'bytes'

/** The caller's end, for what the function does. */
export interface CallerSocket {
  /** The function sends a message, or a part of one. @param more it goes on in the next part */
  send(kind: MessageKind, bytes: Uint8Array, more: boolean): void
  /** The function has taken so much of what was passed to it. */
  credited(bytes: number): void
  /** The function sends its close frame. */
  close(code: number, reason: string): void
}

/** The function's end, for what the caller does. */
export interface FunctionSocket {
  /** The caller sends a message, or a part of one. The bytes may be a view of more. @param more it goes on in the next part */
  part(kind: MessageKind, bytes: Uint8Array, more: boolean): void
  /** The caller has taken so much of what was sent. */
  credit(bytes: number): void
  /** The caller's close frame, whoever began to close. Nothing comes behind it. */
  closed(code: number, reason: string): void
}
