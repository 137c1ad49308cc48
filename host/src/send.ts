import type { ToServer } from '@carpool/wire'

/** Sends a message to the server. @param body it, or the number under which it has gone ahead */
export type Send = (message: ToServer, text?: string, body?: Uint8Array | number) => void
