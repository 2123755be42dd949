// anywidget module of PlayerWidget: one store a widget, any number of views on it.

import { SoundStore } from '@pygpukit/core';
import { PlayerView } from '@pygpukit/views';
import { passOn } from './still.js';

type Listener = (content: unknown, buffers: DataView[]) => void;

interface Model {
  on(event: 'msg:custom', listener: Listener): void;
  off(event: 'msg:custom', listener: Listener): void;
  send(content: unknown): void;
}

export default () => {
  let store = new SoundStore(() => undefined);
  return {
    initialize({ model }: { model: Model }): () => void {
      store = new SoundStore((message) => model.send(message));
      const receive: Listener = (content, buffers) => void (passOn(content) || store.receive(content, buffers));
      model.on('msg:custom', receive);
      return () => model.off('msg:custom', receive);
    },
    render({ model, el }: { model: Model; el: HTMLElement }): () => void {
      const view = new PlayerView(el, store);
      model.send({ type: 'view' });
      return () => view.dispose();
    },
  };
};
