// What leaves the player is what came in, sample for sample: ten minutes of chunks that come with jitter, rendered offline.

import { expect, test } from '@playwright/test';
import { openSoundPage } from '../support/sound-page.ts';
import { failOnPageErrors } from '../support/views.ts';

failOnPageErrors();

for (const { rate, channels, seconds } of [
  { rate: 24000, channels: 1, seconds: 600 },
  { rate: 44100, channels: 2, seconds: 60 },
  { rate: 48000, channels: 1, seconds: 60 },
  { rate: 11025, channels: 1, seconds: 60 },
]) {
  test(`${seconds} s at ${rate} Hz of ${channels} channels, in chunks with jitter`, async ({ page }) => {
    await openSoundPage(page);
    const heard = await page.evaluate(async ({ rate, channels, seconds }) => {
      const total = seconds * rate;
      const context = new OfflineAudioContext(channels, total + rate, rate);
      const chunks = new sound.Chunks(channels);
      const output = new sound.Output(context, chunks);
      let state = 7;
      const random = (): number => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
      let arrived = 0;
      /** Chunks of 1 to 60 ms, until the sound is here so far. */
      const arrive = (until: number): void => {
        while (arrived < Math.min(until, total)) {
          const count = Math.min(Math.ceil(rate * (0.001 + 0.059 * random())), total - arrived);
          const chunk = new Float32Array(count * channels);
          for (let channel = 0; channel < channels; channel++) for (let i = 0; i < count; i++) chunk[channel * count + i] = sampleOf(arrived + i, channel);
          chunks.add(arrived, chunk);
          arrived += count;
        }
      };
      const step = (): void => {
        // Each time as much as lasts from 0.3 s to a second: sometimes nothing is new, sometimes much comes at once.
        arrive(Math.floor((context.currentTime + 0.3 + 0.7 * random()) * rate));
        output.pump(total);
        const next = context.currentTime + 0.05 + 0.2 * random();
        if (next < seconds + 0.5) void context.suspend(next).then(step).then(() => context.resume());
      };
      output.begin(0);
      step();
      const rendered = await context.startRendering();
      // The first sample that is heard is the first of the sound.
      const first = rendered.getChannelData(0).findIndex((value) => value !== 0) - (sampleOf(0, 0) === 0 ? 1 : 0);
      let different = 0;
      for (let channel = 0; channel < channels; channel++) {
        const samples = rendered.getChannelData(channel);
        for (let i = 0; i < total; i++) if (samples[first + i] !== sampleOf(i, channel)) different++;
        for (let i = first + total; i < samples.length; i++) if (samples[i] !== 0) different++;
      }
      return { different, gaps: output.gaps, firstMs: (1000 * first) / rate };
    }, { rate, channels, seconds });
    expect(heard).toMatchObject({ different: 0, gaps: 0 });
    expect(heard.firstMs).toBeLessThan(30);
  });
}
