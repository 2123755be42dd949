import { expect, test } from 'vitest';
import { HTML, MARKDOWN, WIDGET, lacksView, savedStill } from '../src/view-output.js';

const view = { [WIDGET]: { model_id: 'a' }, [HTML]: '<p>then</p>', 'text/plain': 'MemoryWidget()' };

test('the still of our views is taken, and of no other output', () => {
  for (const plain of ['MemoryWidget()', 'CellsWidget()', "ChatWidget('stub')", 'PlayerWidget(1.000 s, 8000 Hz, 1 channel)', 'AudioBuffer(1.000 s)'])
    expect(savedStill({ ...view, 'text/plain': plain })).toEqual({ kind: HTML, text: '<p>then</p>' });
  expect(savedStill({ ...view, 'text/plain': 'assistant: yes' }, { pygpukit: { view: true } })?.text).toBe('<p>then</p>');
  expect(savedStill({ ...view, [MARKDOWN]: '**You:** a' })).toEqual({ kind: MARKDOWN, text: '**You:** a' });
  const { [WIDGET]: _, ...plain } = view;
  const { [HTML]: __, ...bare } = view;
  const others = [plain, bare, { ...view, 'text/plain': 'IntSlider(value=0)' }, { ...view, 'text/plain': 'my MemoryWidget()' }, { ...view, [HTML]: 3 }, {}];
  for (const other of others) expect(savedStill(other)).toBeUndefined();
});

test.each([
  ['there is no model', WIDGET, false, 'Error displaying widget: model not found', true, true],
  ['the model may come', WIDGET, false, 'Loading widget...', true, false],
  ['no kernel could bring the model', WIDGET, false, 'Loading widget...', false, true],
  ['there is a view', WIDGET, true, '8 MiB used', false, false],
  ['a view said the words itself', WIDGET, true, 'Error displaying widget: model not found', false, false],
  ['drawing a view failed', WIDGET, false, 'Error displaying widget', false, false],
  ['nothing is there yet', WIDGET, false, '', false, false],
])('where %s', (_, mimeType, drawn, words, expected, lacks) => {
  for (const trusted of [true, false]) expect(lacksView({ mimeType, drawn, words }, trusted, expected)).toBe(lacks);
});

test('HTML that the lab has drawn is replaced where it is not trusted', () => {
  const shown = { mimeType: HTML, drawn: true, words: '8 MiB used' };
  expect(lacksView(shown, false, true)).toBe(true);
  expect(lacksView(shown, true, true)).toBe(false);
  expect(lacksView({ ...shown, drawn: false, words: '' }, false, true)).toBe(false);
});
