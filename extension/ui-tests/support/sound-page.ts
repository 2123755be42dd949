// The player's own queue and output in a page, to be given samples and listened to: bundled for the test as the widgets are.

import { join } from 'node:path';
import { type Page } from '@playwright/test';
import { build } from 'esbuild';

const ROOT = join(import.meta.dirname, '../..');

type Sound = typeof import('../../core/src/index.ts') & typeof import('../../views/src/index.ts');

declare global {
  const sound: Sound;
  /** A sample of the sound that is streamed: any float32 between -1 and 1, told by its number and channel alone. */
  function sampleOf(number: number, channel: number): number;
}

/** Opens an empty page, on an address of this machine as AudioWorklets want one, in which `sound` has the player's parts. */
export async function openSoundPage(page: Page): Promise<void> {
  const { outputFiles } = await build({
    stdin: { contents: "export * from '@pygpukit/core'; export * from '@pygpukit/views';", resolveDir: join(ROOT, 'widgets') },
    bundle: true,
    format: 'iife',
    globalName: 'sound',
    target: 'es2022',
    write: false,
  });
  await page.route('http://localhost/', (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>sound</title>' }));
  await page.goto('http://localhost/');
  await page.addScriptTag({ content: outputFiles[0]?.text ?? '' });
  await page.addScriptTag({
    content: `function sampleOf(number, channel) {
      let x = Math.imul(number + 1, 0x9e3779b1) ^ Math.imul(channel + 1, 0x85ebca6b);
      x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d);
      x = Math.imul(x ^ (x >>> 12), 0x297a2d39);
      return Math.fround(((x ^ (x >>> 15)) | 0) / 2 ** 31);
    }`,
  });
}
