// That of the package itself: what it is without the part that takes hold of the network of Node.js.
export * from '../../../../node_modules/msw/lib/core/index.mjs'
