/** Streams that encode and decode text as it passes. */
import { toText } from '../language/values.ts'
import { encodeUtf8 } from '../web-api/encoding.ts'
import { streams } from '../web-api/streams.ts'
import { TextDecoder } from '../web-api/text-decoder.ts'
import { asInterfaces } from './interfaces.ts'

type Transform<I, O> = InstanceType<ReturnType<typeof streams>['TransformStream']> & {
  readonly readable: import('web-streams-polyfill').ReadableStream<O>
  readonly writable: import('web-streams-polyfill').WritableStream<I>
}

function transformOf<I, O>(transform: (chunk: I) => O | undefined, flush: () => O | undefined): Transform<I, O> {
  return new (streams().TransformStream)<I, O>({
    transform(chunk, controller) {
      const made = transform(chunk)
      if (made !== undefined) controller.enqueue(made)
    },
    flush(controller) {
      const made = flush()
      if (made !== undefined) controller.enqueue(made)
    },
  })
}

const ofText = (text: string): string | undefined => (text === '' ? undefined : text)

export class TextDecoderStream {
  readonly #decoder: TextDecoder
  readonly #transform: Transform<unknown, string>

  constructor(label: unknown = 'utf-8', options?: { fatal?: boolean; ignoreBOM?: boolean } | null) {
    const decoder = (this.#decoder = new TextDecoder(label, options))
    this.#transform = transformOf<unknown, string>(
      (chunk) => {
        if (chunk === undefined) throw new TypeError('A TextDecoderStream takes an ArrayBuffer or a view of one.')
        return ofText(decoder.decode(chunk, { stream: true }))
      },
      () => ofText(decoder.decode()),
    )
  }

  get encoding(): string {
    return this.#decoder.encoding
  }

  get fatal(): boolean {
    return this.#decoder.fatal
  }

  get ignoreBOM(): boolean {
    return this.#decoder.ignoreBOM
  }

  get readable(): object {
    return this.#transform.readable
  }

  get writable(): object {
    return this.#transform.writable
  }
}

export class TextEncoderStream {
  /** A high surrogate at the end of the chunk before, which waits for its partner. */
  #high = ''
  readonly #transform = transformOf<unknown, Uint8Array>(
    (chunk) => {
      let text = this.#high + toText(chunk)
      const last = text.charCodeAt(text.length - 1)
      this.#high = last >= 0xd800 && last <= 0xdbff ? text.slice(-1) : ''
      if (this.#high !== '') text = text.slice(0, -1)
      return text === '' ? undefined : encodeUtf8(text)
    },
    () => (this.#high === '' ? undefined : encodeUtf8('\ufffd')),
  )

  get encoding(): string {
    return 'utf-8'
  }

  get readable(): object {
    return this.#transform.readable
  }

  get writable(): object {
    return this.#transform.writable
  }
}

asInterfaces({ TextDecoderStream, TextEncoderStream })
