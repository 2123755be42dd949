// What all modules do: one store, one channel and one visibility a widget, any number of views on them.

import { Channel, Store } from '@pygpukit/core';
import { type Panel } from '@pygpukit/views';
import { passOn } from './still.js';
import { Visibility } from './visibility.js';

/** The part of anywidget's model that is used here. */
interface Model {
  on(event: 'msg:custom', listener: (content: unknown, buffers: DataView[]) => void): void;
  off(event: 'msg:custom', listener: (content: unknown, buffers: DataView[]) => void): void;
  send(content: unknown): void;
}

type End = () => void;

interface Module {
  initialize(context: { model: Model }): End;
  render(context: { el: HTMLElement }): End;
}

/** anywidget calls the result once a widget, so its variables are that widget's state. */
export function dashboard(makeView: (host: HTMLElement, store: Store, channel: Channel) => Panel): () => Module {
  return () => {
    const store = new Store();
    let channel = new Channel(() => undefined);
    let visibility: Visibility | null = null;
    return {
      initialize({ model }) {
        channel = new Channel((content) => model.send(content));
        const receive = (content: unknown, buffers: DataView[]): void => {
          visibility?.heard();
          if (!channel.receive(content) && !passOn(content)) store.receive(content, buffers);
        };
        model.on('msg:custom', receive);
        // Each time somebody begins to look, the kernel sends the state so far.
        visibility = new Visibility((visible) => model.send({ type: 'view', visible }));
        return () => {
          model.off('msg:custom', receive);
          channel.close();
        };
      },
      render({ el }) {
        const view = makeView(el, store, channel);
        visibility?.add(view.element);
        return () => {
          visibility?.remove(view.element);
          view.dispose();
        };
      },
    };
  };
}
