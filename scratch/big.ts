import WebSocket from 'ws'
import { performance } from 'node:perf_hooks'
const ws = new WebSocket(process.argv[2] ?? 'ws://127.0.0.1:9777', { perMessageDeflate: false })
await new Promise((r) => ws.once('open', r))
const run = async (total: number, frag: number) => {
  const payload = Buffer.alloc(frag, 97)
  const t0 = performance.now()
  const back = new Promise<any>((r) => ws.once('message', r))
  for (let i = 0; i < total; i += frag) ws.send(payload.toString(), { fin: i + frag >= total })
  const d = await back
  console.log(total, frag, d.length, (performance.now() - t0).toFixed(0) + ' ms')
}
await run(4 << 20, 4 << 20)
await run(4 << 20, 65536)
await run(4 << 20, 1024)
await run(4 << 20, 256)
await run(4 << 20, 64)
await run(16 << 20, 16 << 20)
ws.close()
