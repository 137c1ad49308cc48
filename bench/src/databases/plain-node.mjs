import { createServer } from 'node:http'
import { ask } from './pool.mjs'

const server = createServer((_request, response) => void ask().then((answer) => response.end(`${answer}`)))
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}` })))
