// When a pane gets a tile of its own, and when it is a tab.

import { expect, it } from 'vitest';
import { hasRoom } from '../src/column.js';

it('two tiles stand in a window 950 px high, and a third one behind a tab', () => {
  const column = 950 - 56; // without the lab's menu and status bar
  expect([0, 1, 2].map((tiles) => hasRoom(column, tiles))).toEqual([true, true, false]);
  expect(hasRoom(1400, 2)).toBe(true);
});
