/** A thread that reads one source map, so that the server does not stand meanwhile. It posts what it makes of it. */
import { parentPort, workerData } from 'node:worker_threads'
import { indexSourceMap } from './source-map-index.ts'

const map = indexSourceMap(workerData as string)
parentPort?.postMessage(map, map === undefined ? [] : [map.mappings.buffer, map.marks.buffer])
