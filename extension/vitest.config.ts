// Unit tests of the core, of the plain modules of the views and of the lab extension, and of the benchmark's arithmetic run in Node;
// what needs a browser is in ui-tests.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['core/test/**/*.test.ts', 'views/test/**/*.test.ts', 'labext/test/**/*.test.ts', 'ui-tests/bench/*.test.ts'],
    testTimeout: 60_000,
  },
});
