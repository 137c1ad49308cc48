import { buildDeployment, type DeploymentOptions } from '@carpool/bundler'
import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import { deployedText } from '../deployed-text.ts'
import { addDeploymentOptions } from '../deployment-options.ts'
import { addOwnerOption, type OwnerOption } from '../owner-option.ts'
import type { Verb } from '../verb.ts'

export const deploy: Verb<ConnectionOptions & DeploymentOptions & OwnerOption> = {
  define(command) {
    addDeploymentOptions(command)
    addOwnerOption(command)
    addConnectionOptions(command)
  },

  async run({ args: [path = '.'], options, io, output }) {
    const client = connect(options, { io, output })
    const { name, request } = await buildDeployment(path, options)
    const deployed = await client.deploy(name, request, options.owner)
    output.answer({ ...deployed, server: client.adminUrl }, deployedText(deployed))
    if (deployed.reason !== undefined) output.warn(`${name} stays disabled because ${deployed.reason}.`)
  },
}
