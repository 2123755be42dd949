// What both modules do: one store and one visibility a widget, any number of views on them.

import { Store } from '@pygpukit/core';
import { type Panel } from '@pygpukit/views';
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
export function dashboard(makeView: (host: HTMLElement, store: Store) => Panel): () => Module {
  return () => {
    const store = new Store();
    let visibility: Visibility | null = null;
    return {
      initialize({ model }) {
        const receive = (content: unknown, buffers: DataView[]): void => store.receive(content, buffers);
        model.on('msg:custom', receive);
        // Each time somebody begins to look, the kernel sends the state so far.
        visibility = new Visibility((visible) => model.send({ type: 'view', visible }));
        return () => model.off('msg:custom', receive);
      },
      render({ el }) {
        const view = makeView(el, store);
        visibility?.add(view.element);
        return () => {
          visibility?.remove(view.element);
          view.dispose();
        };
      },
    };
  };
}
