// anywidget module of ChatWidget.

import { ChatView, readChat } from '@pygpukit/views';

interface Model {
  on(event: 'msg:custom', listener: (content: unknown) => void): void;
  off(event: 'msg:custom', listener: (content: unknown) => void): void;
  send(content: unknown): void;
}

export default () => ({
  render({ model, el }: { model: Model; el: HTMLElement }): () => void {
    const view = new ChatView(el, (message) => model.send(message));
    const receive = (content: unknown): void => {
      const message = readChat(content);
      if (message) view.receive(message);
    };
    model.on('msg:custom', receive);
    model.send({ type: 'view' });
    return () => {
      model.off('msg:custom', receive);
      view.dispose();
    };
  },
});
