// Sockets of node:net, without a database: what is said and shown of them.
import net from 'node:net'
import { text } from 'node:stream/consumers'

const problemOf = (socket) =>
  new Promise((resolve) => {
    socket.on('connect', () => resolve('connected'))
    socket.on('error', ({ name, message, code, syscall, address, port, hostname }) =>
      resolve({ name, message, code, syscall, address, port, hostname }),
    )
  })
const once = (socket, event) => new Promise((resolve) => socket.once(event, resolve))

/** @param port of a server that echoes what it hears, and ends when its peer does */
export const casesOf = ({ port }) => ({
  'an echo': async () => {
    const socket = net.connect(port, '127.0.0.1')
    const events = []
    for (const event of ['lookup', 'connect', 'ready', 'end', 'finish', 'close']) socket.on(event, () => events.push(event))
    socket.write('hello ')
    socket.end('wörld')
    const heard = await text(socket)
    await once(socket, 'close')
    const { bytesRead, bytesWritten, destroyed, readyState } = socket
    return { heard, events, bytesRead, bytesWritten, destroyed, readyState }
  },
  'what is known of the peer': async () => {
    const socket = net.createConnection({ port, host: '127.0.0.1' })
    const before = [socket.connecting, socket.pending, socket.readyState, socket.remoteAddress]
    await once(socket, 'connect')
    const { remoteAddress, remotePort, remoteFamily, connecting, pending, readyState } = socket
    socket.destroy()
    return { before, remoteAddress, remotePort: remotePort === port, remoteFamily, connecting, pending, readyState }
  },
  'writes of all kinds': async () => {
    const socket = net.connect(port, '127.0.0.1')
    socket.cork()
    socket.write('a')
    socket.write(Buffer.from('b'))
    socket.write('ff', 'hex')
    socket.write('é', 'latin1')
    socket.write('x', 'utf16le')
    socket.uncork()
    await new Promise((resolve) => socket.end(new Uint8Array([1, 2, 3]), resolve))
    const parts = []
    for await (const part of socket) parts.push(part)
    return Buffer.concat(parts).toString('hex')
  },
  '3 MB there and back, with pauses': async () => {
    const socket = net.connect(port, '127.0.0.1')
    const bytes = Buffer.alloc(3 * 1024 * 1024, 'abcdefghij')
    socket.end(bytes)
    const parts = []
    for await (const part of socket) {
      parts.push(part)
      if (parts.length % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    }
    return Buffer.concat(parts).equals(bytes)
  },
  'who awaits the last bytes goes on before the end': async () => {
    const orderOf = async () => {
      const order = []
      const socket = net.connect(port, '127.0.0.1')
      socket.once('end', () => order.push('end'))
      socket.once('data', () => {
        let turns = Promise.resolve()
        for (let turn = 0; turn < 10; turn++) turns = turns.then(() => {})
        void turns.then(() => order.push('goes on'))
      })
      socket.end('x')
      await once(socket, 'close')
      return order.join()
    }
    return [...new Set(await Promise.all(Array.from({ length: 50 }, orderOf)))]
  },
  'no timer runs between the end of a socket and its close': async () => {
    const timersBetween = async () => {
      const socket = net.connect(port, '127.0.0.1')
      let [hasEnded, count] = [false, 0]
      const timer = setInterval(() => (count += hasEnded ? 1 : 0), 1)
      socket.once('end', () => (hasEnded = true))
      socket.resume().end('x')
      await once(socket, 'close')
      clearInterval(timer)
      return count
    }
    const counts = await Promise.all(Array.from({ length: 50 }, timersBetween))
    return counts.reduce((sum, count) => sum + count)
  },
  'what connects anew whenever that fails lets timers run': async () => {
    let [attempts, isOver] = [0, false]
    const again = () => {
      if (isOver) return
      attempts++
      const socket = net.connect({ path: '/no-such-folder/socket' })
      socket.on('error', () => {}).on('close', again)
    }
    again()
    await new Promise((resolve) => setTimeout(resolve, 20))
    isOver = true
    return attempts > 1
  },
  'a timeout that is taken back': async () => {
    const [socket, witness] = [net.connect(port, '127.0.0.1').setTimeout(20), net.connect(port, '127.0.0.1')]
    let timeouts = 0
    await once(socket, 'connect')
    // Counted from here: to connect may take longer.
    socket.setTimeout(0).on('timeout', () => timeouts++)
    socket.write('x')
    await once(socket, 'data')
    await once(witness.setTimeout(100), 'timeout')
    const before = timeouts
    await once(socket.setTimeout(20), 'timeout')
    socket.destroy()
    witness.destroy()
    return [before, timeouts]
  },
  'a timeout': async () => {
    const socket = net.connect(port, '127.0.0.1').setTimeout(50)
    await once(socket, 'timeout')
    const { destroyed, timeout } = socket
    socket.destroy()
    return { destroyed, timeout }
  },
  'half-open': async () => {
    const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.end('x')
    const heard = await text(socket)
    return { heard, readyState: socket.readyState }
  },
  'write behind the end': async () => {
    const socket = net.connect(port, '127.0.0.1')
    await once(socket, 'connect')
    socket.end()
    socket.on('error', () => {})
    return await new Promise((resolve) => socket.write('x', (error) => resolve(error.code)))
  },
  'nobody listens': () => problemOf(net.connect(1, '127.0.0.1')),
  'no such name': () => problemOf(net.connect(port, 'no-such-name.invalid')),
  'no port': () => {
    try {
      net.connect({ host: '127.0.0.1' })
    } catch ({ code, message }) {
      return { code, message }
    }
  },
  'destroyed before it is connected': async () => {
    const socket = net.connect(port, '127.0.0.1')
    socket.write('x', () => {})
    socket.destroy()
    await once(socket, 'close')
    return socket.readyState
  },
  'an AbortSignal': async () => {
    const abort = new AbortController()
    const socket = net.connect({ port, host: '127.0.0.1', signal: abort.signal })
    const failed = once(socket, 'error')
    abort.abort()
    const { name, code } = await failed
    return { name, code }
  },
})
