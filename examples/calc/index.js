/** The stress levels 1 to 9. */
const LEVELS = [
  { calculations: 0, array: 0, calls: 0 },
  { calculations: 2_000, array: 100, calls: 20 },
  { calculations: 20_000, array: 1_000, calls: 20 },
  { calculations: 200_000, array: 10_000, calls: 20 },
  { calculations: 500_000, array: 25_000, calls: 20 },
  { calculations: 2_000_000, array: 100_000, calls: 20 },
  { calculations: 10_000_000, array: 10_000, calls: 1_000 },
  { calculations: 10_000_000, array: 100, calls: 100_000 },
  { calculations: 6_000_000, array: 20, calls: 300_000 },
]
const LARGEST = { calculations: 10_000_000, array: 1_000_000, calls: 10_000_000 }

export default {
  fetch(request) {
    try {
      return Response.json(run(readWork(new URL(request.url).searchParams)))
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      return Response.json({ error: error.message }, { status: 400 })
    }
  },
}

/** The work of a level, with what else the query says in its place. */
function readWork(query) {
  const level = readNumber(query, 'level', 1, 1, LEVELS.length)
  const { calculations, array, calls } = LEVELS[level - 1]
  const work = {
    calculations: readNumber(query, 'calculations', calculations, 0, LARGEST.calculations),
    array: readNumber(query, 'array', array, 0, LARGEST.array),
    calls: readNumber(query, 'calls', calls, 0, LARGEST.calls),
  }
  if (work.calculations > 0 && (work.array === 0 || work.calls === 0)) {
    throw new RangeError('calculations need an array of at least 1 and at least 1 call')
  }
  return work
}

function readNumber(query, name, fallback, least, most) {
  const value = Number(query.get(name) ?? fallback)
  if (Number.isInteger(value) && value >= least && value <= most) return value
  throw new RangeError(`${name} must be a whole number from ${least} to ${most}`)
}

function run({ calculations, array, calls }) {
  const [values, factors, divisors] = [randomArray(array), randomArray(array), randomArray(array)]
  let multiplications = 0
  let sum = 0

  /** The small function: goes on with the calculations of the given numbers, over and over through the arrays. */
  function calculate(from, to) {
    for (let number = from; number < to; number++) {
      const index = number % array
      if (Math.random() < 0.5) {
        sum += values[index] * factors[index]
        multiplications++
      } else {
        sum += values[index] / divisors[index]
      }
    }
  }

  for (let call = 0; call < calls; call++) {
    calculate(Math.floor((calculations * call) / calls), Math.floor((calculations * (call + 1)) / calls))
  }
  return { calculations, array, calls, multiplications, divisions: calculations - multiplications, sum }
}

/** Numbers from 1 to 2: none of them is zero, which would be no divisor. */
function randomArray(length) {
  return Float64Array.from({ length }, () => 1 + Math.random())
}
