// `npm run screenshots`: pictures of the tour for the documentation, docs/images/tour-light.png and tour-dark.png.
import { defineConfig } from '@playwright/test';
import { chromium } from './support/chromium.ts';

export default defineConfig({
  testMatch: 'screenshots/*.ts',
  workers: 1,
  timeout: 240_000,
  reporter: [['list']],
  use: { ...chromium, actionTimeout: 10_000 },
});
