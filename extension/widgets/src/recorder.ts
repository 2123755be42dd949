// anywidget module of RecorderWidget.

import { RecorderView, type RecorderState } from '@pygpukit/views';
import { passOn } from './still.js';

interface Model {
  on(event: 'msg:custom', listener: (content: unknown) => void): void;
  off(event: 'msg:custom', listener: (content: unknown) => void): void;
  send(content: unknown, callbacks?: undefined, buffers?: ArrayBuffer[]): void;
}

export default () => ({
  render({ model, el }: { model: Model; el: HTMLElement }): () => void {
    const view = new RecorderView(el, (message, ...buffers) => model.send(message, undefined, buffers));
    const receive = (content: unknown): void => {
      if (passOn(content)) return;
      const type = typeof content === 'object' && content !== null ? (content as { type?: unknown }).type : undefined;
      if (type === 'state' || type === 'stop') view.receive(content as RecorderState);
    };
    model.on('msg:custom', receive);
    model.send({ type: 'view' });
    return () => {
      model.off('msg:custom', receive);
      view.dispose();
    };
  },
});
