// The dialog's body: the status line, part by part. Kernel text only becomes textContent.

import type { JSONObject } from '@lumino/coreutils';
import { Widget } from '@lumino/widgets';

/** The kernel's line is "device | memory | pool | launches": the first part heads the rest. */
export function statusBody(status: JSONObject): Widget {
  const node = document.createElement('div');
  node.className = 'pygpukit-status';
  const line = typeof status['line'] === 'string' ? status['line'] : 'The kernel sent no status line.';
  line.split(' | ').forEach((part, i) => {
    const row = document.createElement('p');
    row.textContent = part;
    Object.assign(row.style, { margin: '0 0 6px', fontWeight: i === 0 ? '600' : '400', fontVariantNumeric: 'tabular-nums' });
    node.append(row);
  });
  return new Widget({ node });
}
