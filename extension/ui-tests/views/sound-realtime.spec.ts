// What a real output plays is what came in, sample for sample: a stream whose chunks come with jitter, captured in the audio thread.
//
// Ten minutes by `npm run realtime`; the usual run takes PYGPUKIT_REALTIME_S seconds of it, 8 where that is not set.

import { expect, test } from '@playwright/test';
import { openSoundPage } from '../support/sound-page.ts';
import { failOnPageErrors } from '../support/views.ts';

failOnPageErrors();

const SECONDS = Number(process.env['PYGPUKIT_REALTIME_S'] ?? 8);
const RATE = 24000;

test(`${SECONDS} s in real time, in chunks with jitter`, async ({ page }) => {
  test.setTimeout((SECONDS + 120) * 1000);
  await openSoundPage(page);
  const heard = await page.evaluate(async ({ rate, seconds }) => {
    const total = seconds * rate;
    const context = new AudioContext({ sampleRate: rate });
    const capture = `registerProcessor('capture', class extends AudioWorkletProcessor {
      process([[samples]]) {
        this.port.postMessage({ frame: currentFrame, samples: samples?.slice() ?? new Float32Array(128) });
        return true;
      }
    });`;
    await context.audioWorklet.addModule(URL.createObjectURL(new Blob([capture], { type: 'text/javascript' })));
    // Always there, so that silence is captured, too.
    const node = new AudioWorkletNode(context, 'capture', { channelCount: 1, channelCountMode: 'explicit' });
    const constant = new ConstantSourceNode(context, { offset: 0 });
    constant.connect(node).connect(context.destination);
    constant.start();
    const connect = AudioNode.prototype.connect as (this: AudioNode, to: AudioNode) => AudioNode;
    Object.assign(AudioNode.prototype, {
      connect(this: AudioNode, to: AudioNode) {
        if (to === context.destination) connect.call(this, node);
        return connect.call(this, to);
      },
    });
    const chunks = new sound.Chunks(1);
    const output = new sound.Output(context, chunks);
    const seen = { compared: 0, different: 0, silent: 0, lost: 0 };
    let next = 0;
    node.port.onmessage = ({ data }: MessageEvent<{ frame: number; samples: Float32Array }>) => {
      if (seen.compared > 0) seen.lost += data.frame - next; // before, the graph was still put together
      next = data.frame + data.samples.length;
      for (const sample of data.samples) {
        if (seen.compared === total) seen.different += Number(sample !== 0);
        else if (sample === 0 && sampleOf(seen.compared, 0) !== 0) seen.silent += Number(seen.compared > 0);
        else if (sample !== sampleOf(seen.compared++, 0)) seen.different++;
      }
    };
    await context.resume();
    const began = performance.now();
    let arrived = 0;
    /** Chunks of 1 to 60 ms, each up to 80 ms late, from half a second before they are due. */
    const arrive = (): void => {
      const due = ((performance.now() - began) / 1000 + 0.5) * rate;
      while (arrived < Math.min(due, total)) {
        const count = Math.min(Math.ceil(rate * (0.001 + 0.059 * Math.random())), total - arrived);
        chunks.add(arrived, Float32Array.from({ length: count }, (_, i) => sampleOf(arrived + i, 0)));
        arrived += count;
      }
      if (arrived < total) setTimeout(arrive, 80 * Math.random());
    };
    arrive();
    output.begin(0);
    const timer = setInterval(() => output.pump(total), 50);
    const deadline = began + (seconds + 30) * 1000;
    while (seen.compared < total && performance.now() < deadline) await new Promise((done) => setTimeout(done, 100));
    await new Promise((done) => setTimeout(done, 300));
    clearInterval(timer);
    const gaps = output.gaps;
    await context.close();
    return { ...seen, gaps };
  }, { rate: RATE, seconds: SECONDS });
  test.info().annotations.push({ type: 'captured', description: JSON.stringify(heard) });
  // Where the machine was too slow there is silence, which is counted; of the samples none is lost, changed or moved.
  expect(heard).toMatchObject({ compared: SECONDS * RATE, different: 0, lost: 0 });
  if (heard.gaps === 0) expect(heard.silent).toBe(0);
});
