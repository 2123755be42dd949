// Unit tests of the core and of the plain modules of the views and of the lab extension run in Node; what needs a browser is in ui-tests.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { include: ['core/test/**/*.test.ts', 'views/test/**/*.test.ts', 'labext/test/**/*.test.ts'], testTimeout: 60_000 },
});
