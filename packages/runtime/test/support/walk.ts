/**
 * Code for a guest: `walk(roots)` finds everything that can be reached from named values, by properties, symbols, prototypes
 * and what getters give, until there is nothing new. It gives `objects` with the shortest way to each; `lines`, one for each
 * way to a value, but for what every function and every class has; and `strings`, every text that it met.
 */
export const WALK = `
  const walk = (roots) => {
    const objects = new Map(), queue = [], lines = [], strings = []
    const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function'
    const kindOf = (value) => {
      if (value === null) return 'null'
      if (typeof value === 'string') strings.push(value)
      if (typeof value === 'function') {
        const isNative = /\\{ \\[native code\\] \\}$/.test(Function.prototype.toString.call(value))
        const kind = Object.prototype.toString.call(value).slice(8, -1)
        return (kind === 'Function' ? 'function' : kind) + ' ' + (value.name || '(anonymous)') + '/' + value.length + (isNative ? '' : ' of source')
      }
      return typeof value === 'object' ? Object.prototype.toString.call(value) : typeof value
    }
    const visit = (value, path) => {
      if (!isObject(value)) return void lines.push(path + ': ' + kindOf(value))
      const known = objects.get(value)
      if (known !== undefined) return void lines.push(path + ' = ' + known)
      objects.set(value, path)
      let kind
      try { kind = kindOf(value) } catch (error) { kind = 'unreadable: ' + error.name }
      lines.push(path + ': ' + kind)
      queue.push([value, path])
    }
    const keyOf = (key) => typeof key === 'symbol' ? '[' + String(key) + ']' : /^[A-Za-z_$][\\w$]*$/.test(key) ? '.' + key : '[' + JSON.stringify(key) + ']'
    const byName = (a, b) => { const one = keyOf(a), other = keyOf(b); return one < other ? -1 : one > other ? 1 : 0 }
    const isUsual = (holder, key, value) =>
      (typeof holder === 'function' && (key === 'length' || key === 'name') && !isObject(value)) ||
      (key === 'constructor' && isObject(value) && Object.getOwnPropertyDescriptor(value, 'prototype')?.value === holder)
    const read = (getter, self, path, isOwn) => {
      let value
      try { value = Reflect.apply(getter, self, []) } catch { return }
      if (isOwn || isObject(value)) visit(value, path)
      else kindOf(value)
    }
    for (const [name, value] of Object.entries(roots)) visit(value, name)
    for (let at = 0; at < queue.length && lines.length < 50_000; at++) {
      const [value, path] = queue[at]
      for (const key of Reflect.ownKeys(value).sort(byName)) {
        const { value: member, get, set } = Reflect.getOwnPropertyDescriptor(value, key)
        const way = path + keyOf(key)
        if (get === undefined && set === undefined) { if (isUsual(value, key, member)) kindOf(member); else visit(member, way); continue }
        if (get !== undefined) { visit(get, way + ' (get)'); if (key !== '__proto__') read(get, value, way, true) }
        if (set !== undefined) visit(set, way + ' (set)')
      }
      const parent = Reflect.getPrototypeOf(value)
      if (parent !== Function.prototype && parent !== Object.prototype) visit(parent, path + '.[[Prototype]]')
      // What the getters of its classes give for it.
      for (let holder = parent; holder !== null && holder !== Object.prototype; holder = Reflect.getPrototypeOf(holder)) {
        for (const key of Reflect.ownKeys(holder).sort(byName)) {
          const { get } = Reflect.getOwnPropertyDescriptor(holder, key)
          if (get !== undefined && !Object.hasOwn(value, key) && value !== value.constructor?.prototype) read(get, value, path + keyOf(key) + ' (inherited)', false)
        }
      }
    }
    return { lines, objects, strings }
  }
`
