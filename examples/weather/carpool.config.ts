import { defineConfig } from '@carpool/sdk'

export default defineConfig({
  timeoutMs: 10_000,
  env: { WEATHER_UPSTREAM: 'http://127.0.0.1:9090' },
})
