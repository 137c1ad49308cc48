/**
 * `node:fs` in a function: the files that were bundled with it, which can be read and not written. The bundler finds them by how
 * the code names them; see module-files.ts.
 */
import assets from 'carpool-node:assets'
import facts from 'carpool-node:facts'
import lists from 'carpool-node:lists'
import { Buffer } from 'node:buffer'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { resolve } from 'node:path'
import { refuse } from './refuse.ts'

type PathLike = string | URL | Uint8Array
type Callback = (error: Error | null, value?: unknown) => void
interface ReadOptions {
  readonly encoding?: string | null
  readonly start?: number
  readonly end?: number
  readonly highWaterMark?: number
  readonly withFileTypes?: boolean
  readonly recursive?: boolean
  readonly throwIfNoEntry?: boolean
}

const ERRNO: Record<string, readonly [number, string]> = {
  ENOENT: [-2, 'no such file or directory'],
  EROFS: [-30, 'read-only file system'],
  EISDIR: [-21, 'illegal operation on a directory'],
  ENOTDIR: [-20, 'not a directory'],
  EBADF: [-9, 'bad file descriptor'],
  EINVAL: [-22, 'invalid argument'],
}

function failure(code: string, syscall: string, path?: string): Error {
  const [errno, text] = ERRNO[code]!
  const error = new Error(`${code}: ${text}, ${syscall}${path === undefined ? '' : ` '${path}'`}`)
  return Object.assign(error, { errno, code, syscall, ...(path !== undefined && { path }) })
}

function pathOf(path: PathLike): string {
  const text = path instanceof URL ? fileURLToPath(path) : typeof path === 'string' ? path : undefined
  if (text !== undefined) return text
  if (path instanceof Uint8Array) return Buffer.from(path).toString()
  const error = new TypeError('The "path" argument must be of type string or an instance of Buffer or URL.')
  throw Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' })
}

/** Of what a path names. An empty one names nothing, while `resolve` takes it for the working directory. */
const placeOf = (path: string): string => (path === '' ? '' : resolve(path))

/** Names in each folder. */
const folders = new Map<string, Map<string, boolean>>([
  [facts.root, new Map()],
  ['/', new Map()],
])
for (const file of Object.keys(assets)) {
  let isFile = true
  for (let path = file; path !== '/'; ) {
    const folder = path.slice(0, path.lastIndexOf('/')) || '/'
    const names = folders.get(folder) ?? new Map<string, boolean>()
    names.set(path.slice(path.lastIndexOf('/') + 1), isFile)
    folders.set(folder, names)
    path = folder
    isFile = false
  }
}

const contents = new Map<string, Buffer>()

function bytesOf(path: string, shown: string, syscall: string): Buffer {
  const known = contents.get(path)
  if (known !== undefined) return known
  const asset = Object.hasOwn(assets, path) ? assets[path] : undefined
  if (asset === undefined) {
    if (folders.has(path)) throw failure('EISDIR', 'read')
    throw failure('ENOENT', syscall, shown)
  }
  const bytes = typeof asset === 'string' ? Buffer.from(asset) : Buffer.from(asset.base64, 'base64')
  contents.set(path, bytes)
  return bytes
}

const encodingOf = (options: unknown): string | null | undefined =>
  typeof options === 'string' ? options : ((options as ReadOptions | null | undefined)?.encoding ?? undefined)

function readFileSync(path: PathLike | number, options?: unknown): Buffer | string {
  const bytes = typeof path === 'number' ? restOf(path) : wholeOf(path)
  const encoding = encodingOf(options)
  return encoding === undefined || encoding === null || encoding === 'buffer'
    ? Buffer.from(bytes)
    : bytes.toString(encoding as BufferEncoding)
}

function wholeOf(path: PathLike): Buffer {
  const shown = pathOf(path)
  return bytesOf(placeOf(shown), shown, 'open')
}

/** What of an open file was not read yet. */
function restOf(descriptor: number): Buffer {
  const file = openFile(descriptor, 'read')
  const rest = file.bytes.subarray(file.at)
  file.at = file.bytes.length
  return rest
}

class Stats {
  readonly size: number
  readonly mode: number
  readonly dev = 0
  readonly ino = 0
  readonly nlink = 1
  readonly uid = 1000
  readonly gid = 1000
  readonly rdev = 0
  readonly blksize = 4096
  readonly blocks: number
  readonly atimeMs = 0
  readonly mtimeMs = 0
  readonly ctimeMs = 0
  readonly birthtimeMs = 0
  readonly atime = new Date(0)
  readonly mtime = new Date(0)
  readonly ctime = new Date(0)
  readonly birthtime = new Date(0)
  readonly #isFolder: boolean

  constructor(size: number, isFolder: boolean) {
    this.#isFolder = isFolder
    this.size = size
    this.mode = isFolder ? 0o40555 : 0o100444
    this.blocks = Math.ceil(size / 512)
  }

  isFile(): boolean {
    return !this.#isFolder
  }
  isDirectory(): boolean {
    return this.#isFolder
  }
  isSymbolicLink(): boolean {
    return false
  }
  isFIFO(): boolean {
    return false
  }
  isSocket(): boolean {
    return false
  }
  isBlockDevice(): boolean {
    return false
  }
  isCharacterDevice(): boolean {
    return false
  }
}

class Dirent {
  readonly name: string
  readonly parentPath: string
  readonly path: string
  readonly #isFile: boolean

  constructor(name: string, parentPath: string, isFile: boolean) {
    this.name = name
    this.parentPath = parentPath
    this.path = parentPath
    this.#isFile = isFile
  }

  isFile(): boolean {
    return this.#isFile
  }
  isDirectory(): boolean {
    return !this.#isFile
  }
  isSymbolicLink(): boolean {
    return false
  }
}

function statOf(path: PathLike, syscall: string): Stats {
  const shown = pathOf(path)
  const place = placeOf(shown)
  if (folders.has(place)) return new Stats(4096, true)
  return new Stats(bytesOf(place, shown, syscall).length, false)
}

function statSync(path: PathLike, options?: ReadOptions): Stats | undefined {
  try {
    return statOf(path, 'stat')
  } catch (error) {
    if (options?.throwIfNoEntry === false) return undefined
    throw error
  }
}

function lstatSync(path: PathLike, options?: ReadOptions): Stats | undefined {
  try {
    return statOf(path, 'lstat')
  } catch (error) {
    if (options?.throwIfNoEntry === false) return undefined
    throw error
  }
}

function existsSync(path: PathLike): boolean {
  try {
    const place = placeOf(pathOf(path))
    return Object.hasOwn(assets, place) || folders.has(place)
  } catch {
    return false
  }
}

function accessSync(path: PathLike, mode = 0): void {
  const shown = pathOf(path)
  if (!existsSync(path)) throw failure('ENOENT', 'access', shown)
  if ((mode & 2) !== 0) throw failure('EROFS', 'access', shown)
}

function readdirSync(path: PathLike, options?: unknown): Array<string | Dirent> {
  const shown = pathOf(path)
  const place = placeOf(shown)
  const names = folders.get(place)
  if (names === undefined) throw failure(Object.hasOwn(assets, place) ? 'ENOTDIR' : 'ENOENT', 'scandir', shown)
  const { recursive = false, withFileTypes = false } =
    (typeof options === 'object' ? (options as ReadOptions | null) : null) ?? {}
  const found: Array<string | Dirent> = []
  const list = (folder: string, prefix: string): void => {
    for (const [name, isFile] of [...(folders.get(folder) ?? [])].toSorted(([one], [other]) => (one < other ? -1 : 1))) {
      found.push(withFileTypes ? new Dirent(name, folder, isFile) : prefix + name)
      if (recursive && !isFile) list(folder === '/' ? `/${name}` : `${folder}/${name}`, `${prefix}${name}/`)
    }
  }
  list(place, '')
  return found
}

/** An open folder, as `opendir` gives it. */
class Dir {
  readonly path: string
  readonly #left: Dirent[]

  constructor(path: string) {
    this.path = path
    this.#left = readdirSync(path, { withFileTypes: true }) as Dirent[]
  }

  readSync(): Dirent | null {
    return this.#left.shift() ?? null
  }
  async read(): Promise<Dirent | null> {
    return this.readSync()
  }
  closeSync(): void {}
  async close(): Promise<void> {}
  async *[Symbol.asyncIterator](): AsyncGenerator<Dirent> {
    for (let next = this.readSync(); next !== null; next = this.readSync()) yield next
  }
}

const opendirSync = (path: PathLike): Dir => new Dir(pathOf(path))

function realpathSync(path: PathLike): string {
  const shown = pathOf(path)
  const place = resolve(shown)
  if (!existsSync(place)) throw failure('ENOENT', 'lstat', shown)
  return place
}
realpathSync.native = realpathSync

interface OpenFile {
  readonly bytes: Buffer
  at: number
}

const open = new Map<number, OpenFile>()
let lastDescriptor = 2

function openFile(descriptor: number, syscall: string): OpenFile {
  const file = open.get(descriptor)
  if (file === undefined) throw failure('EBADF', syscall)
  return file
}

const fstatSync = (descriptor: number): Stats => new Stats(openFile(descriptor, 'fstat').bytes.length, false)

function openSync(path: PathLike, flags: string | number = 'r'): number {
  const shown = pathOf(path)
  if (typeof flags === 'string' ? /[wa+]/.test(flags) : (flags & 3) !== 0) throw failure('EROFS', 'open', shown)
  const bytes = bytesOf(placeOf(shown), shown, 'open')
  open.set(++lastDescriptor, { bytes, at: 0 })
  return lastDescriptor
}

function closeSync(descriptor: number): void {
  if (!open.delete(descriptor)) throw failure('EBADF', 'close')
}

function readSync(descriptor: number, target: Uint8Array, offset?: unknown, length?: number, position?: number | null): number {
  const file = openFile(descriptor, 'read')
  const options =
    typeof offset === 'object' && offset !== null
      ? (offset as { offset?: number; length?: number; position?: number | null })
      : { offset: offset as number | undefined, length, position }
  const from = options.offset ?? 0
  const start = typeof options.position === 'number' && options.position >= 0 ? options.position : file.at
  const part = file.bytes.subarray(start, start + (options.length ?? target.byteLength - from))
  new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(part, from)
  if (typeof options.position !== 'number') file.at = start + part.length
  return part.length
}

function readvSync(descriptor: number, targets: readonly Uint8Array[], position?: number | null): number {
  let count = 0
  for (const target of targets) {
    const at = typeof position === 'number' ? position + count : position
    const read = readSync(descriptor, target, 0, target.byteLength, at)
    count += read
    if (read < target.byteLength) break
  }
  return count
}

/** The output streams of a process are its log. */
function writeSync(descriptor: number, data: unknown): number {
  const text = typeof data === 'string' ? data : Buffer.from(data as Uint8Array).toString()
  const { stdout, stderr } = (globalThis as unknown as { process: Record<string, { write?: (text: string) => unknown }> }).process
  const stream = descriptor === 1 ? stdout : descriptor === 2 ? stderr : undefined
  if (stream === undefined) throw failure(open.has(descriptor) ? 'EROFS' : 'EBADF', 'write')
  if (stream.write === undefined) console.log(text.replace(/\n$/, ''))
  else stream.write(text)
  return Buffer.byteLength(text)
}

class ReadStream extends Readable {
  readonly path: PathLike
  bytesRead = 0
  readonly #options: ReadOptions
  #bytes: Buffer | undefined
  #at = 0
  #end = 0

  constructor(path: PathLike, options?: unknown) {
    const given = (typeof options === 'string' ? { encoding: options } : (options ?? {})) as ReadOptions
    super({
      highWaterMark: given.highWaterMark ?? 65_536,
      ...(typeof given.encoding === 'string' && { encoding: given.encoding as BufferEncoding }),
    })
    this.path = path
    this.#options = given
  }

  override _construct(done: (error?: Error | null) => void): void {
    try {
      const shown = pathOf(this.path)
      this.#bytes = bytesOf(placeOf(shown), shown, 'open')
      this.#at = this.#options.start ?? 0
      this.#end = Math.min((this.#options.end ?? Infinity) + 1, this.#bytes.length)
      done()
      this.emit('open', 3)
      this.emit('ready')
    } catch (error) {
      done(error as Error)
    }
  }

  override _read(size: number): void {
    const part = this.#bytes!.subarray(this.#at, Math.min(this.#at + size, this.#end))
    this.#at += part.length
    this.bytesRead += part.length
    this.push(part.length === 0 ? null : Buffer.from(part))
  }

  close(done?: () => void): void {
    if (done !== undefined) this.once('close', done)
    this.destroy()
  }
}

const createReadStream = (path: PathLike, options?: unknown): ReadStream => new ReadStream(path, options)

/** Every way to change something, with where its path stands. */
const WRITES = [
  'appendFile',
  'chmod',
  'chown',
  'copyFile',
  'cp',
  'fchmod',
  'fchown',
  'fdatasync',
  'fsync',
  'ftruncate',
  'futimes',
  'lchmod',
  'lchown',
  'link',
  'lutimes',
  'mkdir',
  'mkdtemp',
  'rename',
  'rm',
  'rmdir',
  'symlink',
  'truncate',
  'unlink',
  'utimes',
  'writeFile',
  'writev',
] as const
const SYSCALLS: Record<string, string> = {
  appendFile: 'open',
  writeFile: 'open',
  writev: 'write',
  copyFile: 'copyfile',
  utimes: 'utime',
  rm: 'unlink',
}

type AnyFunction = (...args: never[]) => unknown
const sync: Record<string, AnyFunction> = {
  access: accessSync,
  close: closeSync,
  fstat: fstatSync,
  lstat: lstatSync,
  open: openSync,
  opendir: opendirSync,
  read: readSync,
  readFile: readFileSync,
  readv: readvSync,
  readdir: readdirSync,
  readlink: (path: PathLike) => {
    const shown = pathOf(path)
    throw failure(existsSync(path) ? 'EINVAL' : 'ENOENT', 'readlink', shown)
  },
  realpath: realpathSync,
  stat: statSync,
  write: writeSync,
}
for (const name of WRITES) {
  sync[name] = (path: PathLike | number) => {
    if (name === 'writeFile' && (path === 1 || path === 2)) return undefined
    throw failure('EROFS', SYSCALLS[name] ?? name, typeof path === 'number' ? undefined : pathOf(path))
  }
}

const syncNamed = Object.fromEntries(Object.entries(sync).map(([name, call]) => [`${name}Sync`, call]))
const VALUES_OF: Record<string, (value: never, args: never[]) => unknown[]> = {
  read: (count, args) => [count, args[1]],
  readv: (count, args) => [count, args[1]],
  write: (count, args) => [count, args[1]],
}

const callbacks = Object.fromEntries(
  Object.entries(sync).map(([name, call]) => {
    const withCallback = (...args: unknown[]): void => {
      const done = args.pop()
      if (typeof done !== 'function') {
        throw Object.assign(new TypeError('The "cb" argument must be of type function.'), { code: 'ERR_INVALID_ARG_TYPE' })
      }
      let problem: Error | null = null
      let values: unknown[] = []
      try {
        const value = call(...(args as never[]))
        values = VALUES_OF[name]?.(value as never, args as never[]) ?? (value === undefined ? [] : [value])
      } catch (error) {
        problem = error as Error
      }
      globalThis.setImmediate(() => (done as Callback)(problem, ...(values as [unknown])))
    }
    return [name, withCallback]
  }),
)
callbacks['exists'] = (path: unknown, done: unknown): void => {
  globalThis.setImmediate(() => (done as (exists: boolean) => void)(existsSync(path as PathLike)))
}

class FileHandle {
  readonly fd: number
  constructor(descriptor: number) {
    this.fd = descriptor
  }
  async readFile(options?: unknown): Promise<Buffer | string> {
    return readFileSync(this.fd, options)
  }
  async read(target: Uint8Array, ...rest: never[]): Promise<object> {
    return { bytesRead: readSync(this.fd, target, ...(rest as [])), buffer: target }
  }
  async stat(): Promise<Stats> {
    return fstatSync(this.fd)
  }
  async close(): Promise<void> {
    if (open.has(this.fd)) closeSync(this.fd)
  }
  async writeFile(): Promise<never> {
    throw failure('EROFS', 'write')
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

const NO_FOLDERS = 'it has no disk, but the files that were bundled with it'
const constants = { ...lists.fsConstants }
const promised = Object.fromEntries(
  Object.entries(sync)
    .filter(([name]) => !['close', 'fstat', 'open', 'read', 'readFile', 'readv', 'write'].includes(name))
    .map(([name, call]) => [name, async (...args: never[]) => call(...args)]),
)
const promises = {
  ...refuse('fs.promises', NO_FOLDERS, ['glob', 'mkdtempDisposable', 'statfs', 'watch']),
  ...promised,
  readFile: async (path: PathLike | FileHandle, options?: unknown) =>
    readFileSync(path instanceof FileHandle ? path.fd : path, options),
  open: async (path: PathLike, flags?: string) => new FileHandle(openSync(path, flags)),
  constants,
}

function refuseWatch(name: string): AnyFunction {
  return () => {
    throw Object.assign(new Error(`node:fs.${name} is not available in a function: its files never change.`), {
      code: 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM',
    })
  }
}

function createWriteStream(path: PathLike): never {
  throw failure('EROFS', 'open', pathOf(path))
}
class WriteStream {
  constructor(path: PathLike) {
    createWriteStream(path)
  }
}

const openAsBlobSync = (path: PathLike, options?: { readonly type?: string }): Blob =>
  new Blob([new Uint8Array(wholeOf(path))], options)

const fs = {
  ...refuse('fs', NO_FOLDERS, ['glob', 'globSync', 'mkdtempDisposableSync', 'statfs', 'statfsSync', 'Utf8Stream']),
  ...callbacks,
  ...syncNamed,
  accessSync,
  closeSync,
  constants,
  createReadStream,
  createWriteStream,
  Dir,
  Dirent,
  existsSync,
  F_OK: 0,
  FileReadStream: ReadStream,
  FileWriteStream: WriteStream,
  lstatSync,
  openAsBlob: async (path: PathLike, options?: { readonly type?: string }) => openAsBlobSync(path, options),
  openAsBlobSync,
  openSync,
  promises,
  R_OK: 4,
  readdirSync,
  readFileSync,
  ReadStream,
  readSync,
  realpathSync,
  Stats,
  statSync,
  unwatchFile() {},
  W_OK: 2,
  watch: refuseWatch('watch'),
  watchFile: refuseWatch('watchFile'),
  WriteStream,
  writeSync,
  X_OK: 1,
} as Record<string, unknown>

export default fs
