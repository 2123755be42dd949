// anywidget module of TimelineWidget: asks for one chunk of records after the other, then shows them.

import { TimelineData, readHead } from '@pygpukit/core';
import { TimelineView } from '@pygpukit/views';
import { passOn } from './still.js';

/** Between two chunks: a server of Jupyter drops what comes faster than a million bytes a second. */
const PAUSE_MS = 300;

type Listener = (content: unknown, buffers: DataView[]) => void;

interface Model {
  on(event: 'msg:custom', listener: Listener): void;
  off(event: 'msg:custom', listener: Listener): void;
  send(content: unknown): void;
}

export default () => ({
  render({ model, el }: { model: Model; el: HTMLElement }): () => void {
    const view = new TimelineView(el);
    let data: TimelineData | null = null;
    let reading: Promise<void> = Promise.resolve();
    let pause = 0;

    const follow = (): void => {
      if (!data) return;
      if (data.complete) return view.begin(data);
      view.tell(`Reading ${((100 * data.length) / data.head.count).toFixed(0)} % of ${data.head.count} records\u2026`);
      const chunk = data.wanted;
      pause = window.setTimeout(() => model.send({ type: 'want', chunk }), chunk === 0 ? 0 : PAUSE_MS);
    };
    const take = async (into: TimelineData, chunk: unknown, buffer: DataView): Promise<void> => {
      const bytes = await inflated(buffer);
      if (into !== data || chunk !== into.wanted || into.complete) return; // of an earlier answer
      into.add(bytes);
      follow();
    };
    const receive: Listener = (content, [buffer]) => {
      if (passOn(content) || typeof content !== 'object' || content === null) return;
      const head = readHead(content);
      const { type, chunk } = content as { type?: unknown; chunk?: unknown };
      if (head) {
        clearTimeout(pause);
        data = new TimelineData(head);
        follow();
      } else if (type === 'ended') {
        clearTimeout(pause);
        data = null; // what was asked for is of another profile
        model.send({ type: 'view' });
      } else if (type === 'none') {
        view.tell(String((content as { text?: unknown }).text));
      } else if (type === 'works' && buffer && data) {
        const into = data;
        reading = reading.then(() => take(into, chunk, buffer)).catch((error: unknown) => view.tell(`The timeline cannot be read: ${String(error)}`));
      }
    };
    model.on('msg:custom', receive);
    model.send({ type: 'view' });
    return () => {
      model.off('msg:custom', receive);
      clearTimeout(pause);
      view.dispose();
    };
  },
});

async function inflated(buffer: DataView): Promise<Uint8Array> {
  const bytes = new Uint8Array(buffer.buffer as ArrayBuffer, buffer.byteOffset, buffer.byteLength).slice();
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
