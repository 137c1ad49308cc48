/**
 * Loaded into a host process before its program: profiles its main thread when the server's part (profile-server.mjs) says so.
 */
import { Socket } from 'node:net'
import { SelfProfile } from './self-profile.mjs'

const fd = Number(new URL(import.meta.url).searchParams.get('fd'))
const profile = new SelfProfile()
const channel = new Socket({ fd, readable: true, writable: true })
channel.on('error', () => {})
channel.setEncoding('utf8').on('data', (word) => void answer(word.trim()))
channel.unref()

async function answer(word) {
  if (word === 'start') await profile.start()
  channel.write(`${JSON.stringify(word === 'start' ? {} : await profile.stop())}\n`)
}
