// Loaded before each test file, so that its process starts in less than two thirds of the time.
const { existsSync } = require('node:fs')
const { registerHooks } = require('node:module')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')

// Else tap reads every module that a test loads again, with its source map, to tell which tests a change concerns:
// `tap --changed` is not in use.
process.env._TAPJS_PROCESSINFO_EXCLUDE_ = '/./'

// tap in one file (tap-bundle.ts), in place of near 300.
const tap = join(__dirname, '../../node_modules/.carpool-tap/node_modules/@tapjs/core/tap.mjs')
if (existsSync(tap)) {
  const bundled = { url: pathToFileURL(tap).href, format: 'module', shortCircuit: true }
  registerHooks({ resolve: (specifier, context, next) => (specifier === 'tap' ? bundled : next(specifier, context)) })
}

// A test that has ended leaves as hosts do, without taking down its V8: a collection of garbage after isolated-vm has gone can
// end the process by an assertion. All that listens for the end has been called by then.
process.once('beforeExit', () => process.on('exit', () => process.reallyExit(process.exitCode ?? 0)))
