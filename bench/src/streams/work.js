// What is done to bytes, the same in the function and in plain Node.js.
const CHUNK_BYTES = 64 * 1024
/** The byte at offset n of all that is sent is n * 31, modulo 256. */
const CHUNK = Uint8Array.from({ length: CHUNK_BYTES }, (_, index) => index * 31)

/** A stream that is made, of whole chunks. */
export function made(bytes) {
  let left = bytes
  return new ReadableStream({
    pull(controller) {
      if (left <= 0) return controller.close()
      left -= CHUNK_BYTES
      controller.enqueue(CHUNK.slice())
    },
  })
}

/** A transform that flips one bit of every byte. */
export function flipping() {
  return new TransformStream({
    transform(part, controller) {
      const flipped = new Uint8Array(part.length)
      for (let index = 0; index < part.length; index++) flipped[index] = part[index] ^ 0x20
      controller.enqueue(flipped)
    },
  })
}
