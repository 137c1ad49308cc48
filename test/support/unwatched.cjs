// Loaded before each test file. Else tap reads every module that a test loads again, with its source map, to tell which tests a change concerns: half
// the CPU time of a short test, and `tap --changed` is not in use.
process.env._TAPJS_PROCESSINFO_EXCLUDE_ = '/./'
