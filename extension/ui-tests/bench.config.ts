// `npm run bench`: figures of the dashboards in a browser, apart from the tests; tools/ui_benchmark.py calls it and keeps the report.
import { defineConfig } from '@playwright/test';
import { chromium } from './support/chromium.ts';

export default defineConfig({
  testMatch: ['bench/chat.ts', 'bench/lab.ts', 'bench/open.ts', 'bench/page.ts'],
  workers: 1,
  timeout: 400_000,
  reporter: [['list']],
  use: { ...chromium, viewport: { width: 1280, height: 900 }, actionTimeout: 15_000 },
});
