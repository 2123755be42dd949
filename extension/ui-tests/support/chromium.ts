// How Chromium is started: the machine's own, headless, without any background network use.

import { type PlaywrightTestOptions, type PlaywrightWorkerOptions } from '@playwright/test';

export const chromium: Partial<PlaywrightTestOptions & PlaywrightWorkerOptions> = {
  browserName: 'chromium',
  headless: true,
  launchOptions: {
    executablePath: process.env['PYGPUKIT_CHROMIUM'] ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  },
};
