// What is shipped: small, and nothing that could reach for a network.

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@playwright/test';

const ROOT = join(import.meta.dirname, '../../..');
const WIDGETS = join(ROOT, 'pygpukit/jupyter/widgets/static');
const LABEXTENSION = join(ROOT, 'pygpukit.data/data/share/jupyter/labextensions/pygpukit/static');
/** Namespace and licence addresses name things, and a bare scheme begins a link that somebody may press; nothing is fetched from them. */
const HARMLESS = /https?:\/\/(www\.w3\.org|opensource\.org|spdx\.org|github\.com\/(markedjs|cure53|babel))\b|http:\/\/(?=["'`])/g;

function shipped(): string[] {
  return [WIDGETS, LABEXTENSION].flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => /\.(js|css)$/.test(name))
      .map((name) => join(folder, name)),
  );
}

test('every bundle is within its budget', () => {
  const files = shipped();
  expect(files.length).toBeGreaterThanOrEqual(5);
  for (const file of files) expect(readFileSync(file).length, file).toBeLessThanOrEqual(150_000);
});

test('no bundle names an address, loads a module at run time, or writes to the console', () => {
  for (const file of shipped()) {
    const text = readFileSync(file, 'utf8').replace(HARMLESS, '');
    expect(text.match(/https?:\/\/[^"'`\s]*/g) ?? [], file).toEqual([]);
    expect(text, file).not.toMatch(/console\.log/);
    if (file.startsWith(WIDGETS)) expect(text, file).not.toMatch(/\bimport\s*\(|@import|url\((?=["'/#]|https?:|data:)/); // marked has a method url()
  }
});

test('the lockfile names no registry', () => {
  const lock = readFileSync(join(ROOT, 'extension/package-lock.json'), 'utf8');
  expect(lock.match(/"resolved": "(?!core|views|widgets|labext|ui-tests)[^"]*"/g) ?? []).toEqual([]);
});
