// Unit tests of the core and of the lab extension's plain modules run in Node; what needs a browser is in ui-tests.
import { defineConfig } from 'vitest/config';

export default defineConfig({ test: { include: ['core/test/**/*.test.ts', 'labext/test/**/*.test.ts'] } });
