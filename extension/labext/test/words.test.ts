// The table of words: whole, and what the kernel completes is explained.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { CONTROL, QUALIFIERS, TYPES, WORDS } from '../src/words.js';

it('explains every word in one sentence', () => {
  for (const { name, signature, sentence } of WORDS.values()) {
    expect(name).toMatch(/^\w+$/);
    expect(signature, name).toContain(name.replace(/^__half/, 'half'));
    expect(sentence, name).toMatch(/^[^.].*\.$/);
  }
  for (const word of QUALIFIERS) expect(WORDS.has(word), word).toBe(true);
});

it('knows every word that the kernel completes', () => {
  const source = readFileSync(join(import.meta.dirname, '../../../pygpukit/jupyter/vocabulary.py'), 'utf8');
  const builtIn = /_BUILT_IN = """([^"]*)"""/.exec(source)?.[1]?.trim().split(/\s+/) ?? [];
  expect(builtIn.length).toBeGreaterThan(100);
  const plain = new Set([...CONTROL, ...TYPES, 'true', 'false', 'nullptr']);
  expect(builtIn.filter((word) => !WORDS.has(word) && !plain.has(word))).toEqual([]);
});
