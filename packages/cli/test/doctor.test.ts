import { LAYER_NAMES, LAYERS } from '@carpool/sandbox'
import type { Examination } from '@carpool/server'
import { Writable } from 'node:stream'
import t from 'tap'
import { renderExamination } from '../src/commands/doctor.ts'

const STREAM = new Writable()
const CHECKS: Examination['checks'] = [{ name: 'port', state: 'warning', detail: 'Somebody listens there.' }]

t.test('the checks, the layers with what they stop, and nothing to do', async (t) => {
  const layers = LAYER_NAMES.map((name) => ({ name, state: 'on', why: 'It was seen.', ...LAYERS[name] }) as const)
  const text = renderExamination({ checks: CHECKS, layers }, STREAM)
  t.match(text, /^CHECK +STATE +FOUND\nport +warning +Somebody listens there\.\n\nLAYER +STATE +WHAT IT STOPS\n/)
  for (const name of LAYER_NAMES) t.match(text, new RegExp(`^${name} +on +${RegExp.escape(LAYERS[name].stops)}$`, 'm'))
  t.match(text, /\n\nSandbox: all 13 layers are on\.$/)
})

t.test('what is missing comes with why and how to get it', async (t) => {
  const layers = [
    { name: 'user', state: 'unavailable', why: 'The server is not root.', ...LAYERS.user },
    { name: 'seccomp', state: 'off', why: 'It is switched off.', ...LAYERS.seccomp },
    { name: 'rlimits', state: 'on', why: 'It was seen.', ...LAYERS.rlimits },
  ] as const
  const text = renderExamination({ checks: [], layers }, STREAM)
  t.match(
    text,
    '\n\nSandbox: 1 of 3 layers are on.' +
      `\nuser is off: The server is not root. ${LAYERS.user.remedy}` +
      `\nseccomp is off: It is switched off. ${LAYERS.seccomp.remedy}`,
  )
  t.notMatch(text, 'rlimits is')
})
