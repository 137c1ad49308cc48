import { buildDeployment, type DeploymentOptions } from '@carpool/bundler'
import { addConnectionOptions, connect, type ConnectionOptions } from '../connect.ts'
import { addDeploymentOptions, deployedText } from '../deployment.ts'
import { addOwnerOption, type OwnerOption } from '../options.ts'
import type { CliCommand } from '../command.ts'

export const deploy: CliCommand<ConnectionOptions & DeploymentOptions & OwnerOption> = {
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
