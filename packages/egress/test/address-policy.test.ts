import fc from 'fast-check'
import t from 'tap'
import { BLOCKED_PORTS, createAddressPolicy, createOwnAddresses, type AddressPolicyOptions } from '../src/address-policy.ts'

/** A policy by its port of most use. */
function policyOf(options: AddressPolicyOptions = {}): { permits(address: string): boolean } {
  const policy = createAddressPolicy(options)
  return { permits: (address) => policy.check(address, 443) === 'permitted' }
}

const policy = policyOf()

const octets = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255))
type Octets = [number, number, number, number]

/** The rule, written a second time: by numbers. */
function isPublicIpv4([a, b, c, d]: Octets): boolean {
  if (a === 0 || a === 10 || a === 127 || a >= 224) return false
  if (a === 100 && b >= 64 && b <= 127) return false
  if (a === 168 && b === 63 && c === 129 && d === 16) return false
  if (a === 169 && b === 254) return false
  if (a === 172 && b >= 16 && b <= 31) return false
  if (a === 192 && (b === 168 || (b === 0 && (c === 0 || c === 2)) || (b === 88 && c === 99))) return false
  if (a === 198 && (b === 18 || b === 19 || (b === 51 && c === 100))) return false
  return !(a === 203 && b === 0 && c === 113)
}

/** Near the edges of the refused ranges, where a mistake would be. */
const edgeOctets: fc.Arbitrary<Octets> = fc.oneof(
  octets,
  fc.tuple(
    fc.constantFrom(0, 9, 10, 11, 99, 100, 101, 126, 127, 128, 168, 169, 170, 172, 192, 198, 203, 223, 224, 239, 240, 255),
    fc.constantFrom(0, 1, 15, 16, 31, 32, 51, 63, 64, 88, 127, 128, 167, 168, 169, 253, 254, 255),
    fc.constantFrom(0, 1, 2, 3, 99, 100, 113, 129, 254, 255),
    fc.constantFrom(0, 1, 16, 17, 254, 255),
  ),
)

const hex = (value: number): string => value.toString(16)
const pairs = ([a, b, c, d]: Octets): string => `${hex(a * 256 + b)}:${hex(c * 256 + d)}`

t.test('an IPv4 address is judged alike in every spelling that a URL accepts', async () => {
  fc.assert(
    fc.property(edgeOctets, fc.nat(7), ([a, b, c, d], spelling) => {
      const number = ((a * 256 + b) * 256 + c) * 256 + d
      const spellings = [
        `${a}.${b}.${c}.${d}`,
        String(number),
        `0x${hex(number)}`,
        `0${number.toString(8)}`,
        `0x${hex(a)}.0${b.toString(8)}.${c * 256 + d}`,
        `${a}.${(b * 256 + c) * 256 + d}`,
        `${a}.${b}.${c}.${d}.`,
        `${a}.${b}.${c}.${d}`.replace(/\d/g, (digit) => String.fromCharCode(0xff10 + Number(digit))),
      ]
      const { hostname } = new URL(`http://${spellings[spelling]}/`)
      return policy.permits(hostname) === isPublicIpv4([a, b, c, d])
    }),
    { numRuns: 3000 },
  )
})

t.test('an IPv4 address inside an IPv6 one opens nothing', async () => {
  fc.assert(
    fc.property(edgeOctets, fc.boolean(), (address, normalised) => {
      const dotted = address.join('.')
      const read = (text: string): string => (normalised ? new URL(`http://[${text}]/`).hostname.slice(1, -1) : text)
      const unpacked = [
        `::ffff:${dotted}`,
        `::ffff:${pairs(address)}`,
        `0:0:0:0:0:FFFF:${dotted}`,
        `64:ff9b::${dotted}`,
        `64:ff9b::${pairs(address)}`,
      ]
      const refused = [
        `::${pairs(address)}`,
        `::ffff:0:${pairs(address)}`,
        `64:ff9b:1::${pairs(address)}`,
        `2002:${pairs(address)}::1`,
        `2001:0:${pairs(address)}::1`,
        `fe80::5efe:${dotted}`,
      ]
      return (
        unpacked.every((text) => policy.permits(read(text)) === isPublicIpv4(address)) &&
        refused.every((text) => !policy.permits(read(text)))
      )
    }),
    { numRuns: 1000 },
  )
})

const groups = fc.tuple(
  fc.oneof(
    fc.nat(0xffff),
    fc.constantFrom(0, 0x64, 0x1fff, 0x2000, 0x2001, 0x2002, 0x2600, 0x3fff, 0x4000, 0xfc00, 0xfd00, 0xfe80, 0xff02),
  ),
  fc.oneof(fc.nat(0xffff), fc.constantFrom(0, 0xdb8, 0x1ff, 0x200, 0xfff, 0x1000, 0xff9b)),
  fc.array(fc.nat(0xffff), { minLength: 6, maxLength: 6 }),
)

t.test('an IPv6 address is open only if it is global unicast and wraps nothing', async () => {
  fc.assert(
    fc.property(groups, ([first, second, rest]) => {
      fc.pre(!(first === 0x64 && second === 0xff9b))
      const special =
        (first === 0x2001 && (second < 0x200 || second === 0xdb8)) || first === 0x2002 || (first === 0x3fff && second < 0x1000)
      const expected = first >= 0x2000 && first < 0x4000 && !special
      const text = [first, second, ...rest].map(hex).join(':')
      return (
        policy.permits(text) === expected &&
        policy.permits(text.toUpperCase()) === expected &&
        policy.permits(`${text}%eth0`) === expected
      )
    }),
    { numRuns: 3000 },
  )
})

t.test('every known address of cloud metadata and of the machine itself is refused', async (t) => {
  const addresses = [
    '127.0.0.1',
    '::1',
    '::',
    '0.0.0.0',
    '169.254.169.254',
    'fd00:ec2::254',
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
  ]
  for (const address of [
    ...addresses,
    'fe80::1%lo',
    'fe80::1',
    'ff02::1',
    '255.255.255.255',
    '::ffff:7f00:1',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
  ])
    t.notOk(policy.permits(address), address)
  for (const address of ['1.1.1.1', '93.184.216.34', '2606:4700:4700::1111', '2a00:1450:4001::1'])
    t.ok(policy.permits(address), address)
  for (const text of ['', 'localhost', '1.2.3', '[::1]', '1.1.1.1:80', '::1::', '1.1.1.1/32'])
    t.notOk(policy.permits(text), `no address: ${text}`)
})

t.test('an opened range opens its own addresses, in every form, and no others', async (t) => {
  fc.assert(
    fc.property(octets, fc.integer({ min: 1, max: 32 }), octets, (network, prefixLength, other) => {
      const opened = policyOf({ allow: [`${network.join('.')}/${prefixLength}`] })
      const bits = (address: Octets): string =>
        address
          .map((octet) => octet.toString(2).padStart(8, '0'))
          .join('')
          .slice(0, prefixLength)
      const expected = isPublicIpv4(other) || bits(network) === bits(other)
      return [other.join('.'), `::ffff:${pairs(other)}`, `64:ff9b::${other.join('.')}`].every(
        (text) => opened.permits(text) === expected,
      )
    }),
    { numRuns: 1000 },
  )
  const loopback = policyOf({ allow: ['127.0.0.0/8', '::1/128'] })
  t.ok(loopback.permits('127.0.0.1') && loopback.permits('::1') && loopback.permits('::ffff:127.0.0.1'))
  t.notOk(loopback.permits('::2') || loopback.permits('10.0.0.1'))
  t.notOk(policyOf({ allow: ['::/0'] }).permits('127.0.0.1'), 'an IPv6 range opens no IPv4 address')
  t.notOk(policyOf({ allow: ['0.0.0.0/0'] }).permits('::1'))
})

t.test('a range that is none is refused by name', async (t) => {
  const ranges = [
    '',
    'localhost',
    '10.0.0.0/33',
    '10.0.0/8',
    '10.0.0',
    '::/129',
    'fe80::1%eth0/64',
    'fe80::1%eth0',
    '10.0.0.0/8 ',
  ]
  for (const range of [...ranges, '10.0.0.0/', '10.0.0.0/-1', '1.2.3.4/0x8', '::ffff:10.0.0.0/104', '::ffff:10.0.0.0/8']) {
    const error = { code: 'invalid-setting', message: JSON.stringify(range) }
    t.throws(() => createAddressPolicy({ allow: ['10.0.0.0/8', range] }), error, `allow ${range}`)
    t.throws(() => createAddressPolicy({ deny: [range] }), error, `deny ${range}`)
  }
})

t.test('a single address can be opened and closed without a prefix', async (t) => {
  const opened = policyOf({ allow: ['10.0.0.7', 'fd00::7'], deny: ['1.1.1.1'] })
  t.ok(opened.permits('10.0.0.7') && opened.permits('fd00::7') && opened.permits('fd00:0::0:7') && opened.permits('1.1.1.2'))
  t.notOk(opened.permits('10.0.0.6') || opened.permits('10.0.0.8') || opened.permits('fd00::6') || opened.permits('1.1.1.1'))
})

t.test('what is closed stays closed, in every form, whatever is open', async () => {
  fc.assert(
    fc.property(octets, fc.integer({ min: 0, max: 32 }), (network, prefixLength) => {
      const closed = policyOf({ allow: ['0.0.0.0/0', '::/0'], deny: [`${network.join('.')}/${prefixLength}`] })
      return [network.join('.'), `::ffff:${pairs(network)}`, `64:ff9b::${network.join('.')}`].every(
        (text) => !closed.permits(text),
      )
    }),
  )
})

t.test('the ports that the fetch standard blocks are open only where the operator opened the addresses', async (t) => {
  const policy = createAddressPolicy({ allow: ['10.0.0.0/8', '9.9.9.9'] })
  for (const port of BLOCKED_PORTS) {
    t.equal(policy.check('1.1.1.1', port), 'port-refused', String(port))
    t.equal(policy.check('192.168.0.1', port), 'address-refused', 'an address that is closed gives away nothing by its ports')
    t.equal(policy.check('10.0.0.1', port), 'permitted')
    t.equal(policy.check('9.9.9.9', port), 'permitted')
  }
  for (const port of [25, 465, 587, 22, 23, 53, 110, 143, 993, 995, 6000]) t.ok(BLOCKED_PORTS.has(port), String(port))
  for (const port of [80, 443, 8080, 8443, 3000, 5432]) t.equal(policy.check('1.1.1.1', port), 'permitted', String(port))
})

t.test('a public address of this machine is closed as well, for as long as it has it', async (t) => {
  let nowMs = 0
  let addresses = ['5.6.7.8', '2a00:1450:4001:0::1', '127.0.0.1']
  const isOwn = createOwnAddresses(
    () => nowMs,
    () => addresses,
  )
  const policy = policyOf({ isOwn })
  t.notOk(policy.permits('5.6.7.8') || policy.permits('::ffff:5.6.7.8') || policy.permits('64:ff9b::506:708'))
  t.notOk(policy.permits('2a00:1450:4001::1') || policy.permits('2A00:1450:4001:0:0:0:0:1%eth0'))
  t.ok(policy.permits('5.6.7.9'))
  t.ok(policyOf({ isOwn, allow: ['5.6.7.8/32'] }).permits('5.6.7.8'), 'the operator may open it')
  addresses = ['5.6.7.9']
  t.notOk(policy.permits('5.6.7.8'))
  nowMs = 10_000
  t.ok(policy.permits('5.6.7.8'))
  t.notOk(policy.permits('5.6.7.9'))
})
