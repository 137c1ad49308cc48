const { v4: uuid } = require('uuid')

// Module scope runs once for each instance.
const instanceId = uuid()
const numbers = Array.from({ length: 10_000_000 }, (_, index) => index)
let invocations = 0
idsSeen = 0 // not declared: in sloppy mode this makes a global

exports.handler = async () => {
  const invocationId = ++invocations
  idsSeen += invocationId

  let sum = 0
  numbers.forEach((number) => {
    sum += number
  })
  await new Promise((resolve) => setTimeout(resolve, 2000))

  return {
    statusCode: 200,
    headers: { 'content-type': 'text/plain' },
    body: [instanceId, invocationId, numbers.length, sum, 'Hello World'].join(),
  }
}
