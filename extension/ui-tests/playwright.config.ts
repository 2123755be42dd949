// Browser tests in a Chromium that is already there (PYGPUKIT_CHROMIUM or /usr/bin/chromium): nothing is downloaded.
import { defineConfig } from '@playwright/test';
import { chromium } from './support/chromium.ts';

export default defineConfig({
  testMatch: ['views/*.spec.ts', 'lab/*.spec.ts'],
  fullyParallel: false,
  workers: 1,
  timeout: 600_000,
  // On a busy machine what is waited for may take long; where it comes, waiting for longer costs nothing.
  expect: { timeout: 60_000 },
  reporter: [['list']],
  use: { ...chromium, viewport: { width: 1280, height: 900 }, screenshot: 'only-on-failure', actionTimeout: 60_000 },
});
