import { captureStackTrace, defineProperty, deleteProperty, SafeError, setHidden, stringSplit } from '../language/primordials.ts'
import { toText } from '../language/values.ts'

/** Names that have one of the old numeric codes, in their order; some codes have no name any more. */
const NAMES = stringSplit(
  'IndexSizeError,,HierarchyRequestError,WrongDocumentError,InvalidCharacterError,,NoModificationAllowedError,' +
    'NotFoundError,NotSupportedError,InUseAttributeError,InvalidStateError,SyntaxError,InvalidModificationError,' +
    'NamespaceError,InvalidAccessError,,TypeMismatchError,SecurityError,NetworkError,AbortError,URLMismatchError,' +
    'QuotaExceededError,TimeoutError,InvalidNodeTypeError,DataCloneError',
  ',',
)

const CONSTANTS = stringSplit(
  'INDEX_SIZE_ERR,DOMSTRING_SIZE_ERR,HIERARCHY_REQUEST_ERR,WRONG_DOCUMENT_ERR,INVALID_CHARACTER_ERR,' +
    'NO_DATA_ALLOWED_ERR,NO_MODIFICATION_ALLOWED_ERR,NOT_FOUND_ERR,NOT_SUPPORTED_ERR,INUSE_ATTRIBUTE_ERR,' +
    'INVALID_STATE_ERR,SYNTAX_ERR,INVALID_MODIFICATION_ERR,NAMESPACE_ERR,INVALID_ACCESS_ERR,VALIDATION_ERR,' +
    'TYPE_MISMATCH_ERR,SECURITY_ERR,NETWORK_ERR,ABORT_ERR,URL_MISMATCH_ERR,QUOTA_EXCEEDED_ERR,TIMEOUT_ERR,' +
    'INVALID_NODE_TYPE_ERR,DATA_CLONE_ERR',
  ',',
)

export let isDomException: (value: unknown) => value is DOMException
/** One with the same name and message; the stack is that of the call. */
export let copyDomException: (exception: DOMException) => DOMException

export class DOMException extends SafeError {
  #message = ''
  #name = 'Error'

  constructor(message: unknown = '', options: unknown = 'Error') {
    const text = toText(message)
    super(text)
    this.#message = text
    if (typeof options === 'object' && options !== null) {
      const { name, cause } = options as { name?: unknown; cause?: unknown }
      if (name !== undefined) this.#name = toText(name)
      if ('cause' in options) setHidden(this, 'cause', cause)
    } else {
      this.#name = toText(options)
    }
    // The head of the stack takes the name from the getter, but the message from an own property only, which must then go.
    captureStackTrace(this)
    deleteProperty(this, 'message')
  }

  // V8 reads it while Error's constructor still runs, before the private fields are there.
  override get name(): string {
    return #name in this ? this.#name : 'Error'
  }

  override get message(): string {
    return this.#message
  }

  get code(): number {
    for (let index = 0; index < NAMES.length; index++) {
      if (NAMES[index] === this.#name) return index + 1
    }
    return 0
  }

  get [Symbol.toStringTag](): string {
    return 'DOMException'
  }

  static {
    isDomException = (value): value is DOMException => typeof value === 'object' && value !== null && #name in value
    copyDomException = (exception) => new DOMException(exception.#message, exception.#name)
    for (let index = 0; index < CONSTANTS.length; index++) {
      const constant = { value: index + 1, enumerable: true }
      defineProperty(DOMException, CONSTANTS[index]!, constant)
      defineProperty(DOMException.prototype, CONSTANTS[index]!, constant)
    }
  }
}
