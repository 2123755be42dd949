// anywidget module of TalkWidget: each view has a store of its own, since each waits for its own answer.

import { TalkStore } from '@pygpukit/core';
import { TalkView } from '@pygpukit/views';
import { passOn } from './still.js';

type Listener = (content: unknown, buffers: DataView[]) => void;

interface Model {
  on(event: 'msg:custom', listener: Listener): void;
  off(event: 'msg:custom', listener: Listener): void;
  send(content: unknown, callbacks?: undefined, buffers?: ArrayBuffer[]): void;
}

export default () => ({
  render({ model, el }: { model: Model; el: HTMLElement }): () => void {
    const store = new TalkStore();
    const receive: Listener = (content, buffers) => void (passOn(content) || store.receive(content, buffers));
    model.on('msg:custom', receive);
    const view = new TalkView(el, store, (message, ...buffers) => model.send(message, undefined, buffers));
    model.send({ type: 'view' });
    return () => {
      model.off('msg:custom', receive);
      view.dispose();
    };
  },
});
