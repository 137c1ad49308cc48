export { detectSandbox, type Sandbox, type SandboxOptions } from './detect.ts'
export { isLayerName, LAYER_NAMES, LAYERS, type LayerName } from './layers.ts'
export { publicSandboxInfo, requireLayers, sandboxInfo, sandboxSentences, type LayerReport, type LayerState } from './layers.ts'
export type { GroupLimits } from './control-groups.ts'
