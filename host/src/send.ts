import type { ToServer } from '@carpool/wire'

/** Sends a message to the server. */
export type Send = (message: ToServer, text?: string, body?: Uint8Array) => void
