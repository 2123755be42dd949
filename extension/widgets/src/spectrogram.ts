// anywidget module of SpectrogramWidget.

import { type Shape, SpectrogramView } from '@pygpukit/views';
import { passOn } from './still.js';

type Listener = (content: unknown, buffers: DataView[]) => void;

interface Model {
  on(event: 'msg:custom', listener: Listener): void;
  off(event: 'msg:custom', listener: Listener): void;
  send(content: unknown): void;
}

export default () => ({
  render({ model, el }: { model: Model; el: HTMLElement }): () => void {
    const view = new SpectrogramView(el);
    const receive: Listener = (content, [buffer]) => {
      if (passOn(content) || typeof content !== 'object' || content === null || !buffer) return;
      const message = content as { type?: unknown; end: number } & Shape;
      const bytes = new Uint8Array(buffer.buffer as ArrayBuffer, buffer.byteOffset, buffer.byteLength).slice();
      if (message.type === 'state') view.begin(message, bytes);
      else if (message.type === 'columns') view.add(bytes, message.end);
    };
    model.on('msg:custom', receive);
    model.send({ type: 'view' });
    return () => {
      model.off('msg:custom', receive);
      view.dispose();
    };
  },
});
