// anywidget module of ChatWidget.

import { ChatView, type Draft, readChat } from '@pygpukit/views';
import { passOn } from './still.js';

interface Model {
  on(event: 'msg:custom', listener: (content: unknown) => void): void;
  off(event: 'msg:custom', listener: (content: unknown) => void): void;
  send(content: unknown): void;
}

/** anywidget calls this once a widget: what is typed is kept while its view is drawn again. */
export default () => {
  const draft: Draft = { text: '' };
  return { render: view(draft) };
};

const view =
  (draft: Draft) =>
  ({ model, el }: { model: Model; el: HTMLElement }): (() => void) => {
    const view = new ChatView(el, (message) => model.send(message), draft);
    const receive = (content: unknown): void => {
      if (passOn(content)) return;
      const message = readChat(content);
      if (message) view.receive(message);
    };
    model.on('msg:custom', receive);
    model.send({ type: 'view' });
    return () => {
      model.off('msg:custom', receive);
      view.dispose();
    };
  };
