// Three tasks as a kernel tells of them: one that waits, one that runs, one that is paused.

import { type Page, expect } from '@playwright/test';
import { encodeFrame } from '../../core/test/encode.ts';
import { sendFrame, sendMessage } from './plain-page.ts';
import { panel } from './views.ts';

const MiB = 2 ** 20;

/** Three tasks of two tenants: one waits for memory, one runs, one that ran is paused; with their facts. */
export async function threeTasks(page: Page): Promise<void> {
  const names: [number, string][] = [[1, 'train'], [2, 'serve']];
  const task = (t: number, a: number, name: number, from: number, to: number, c = 0) => ({ kind: 32, t, a, name, b: from * 256 + to, c });
  const records = [
    task(1e9, 1, 1, 0, 3),
    task(1.1e9, 1, 1, 3, 4),
    { kind: 17, t: 1.5e9, a: 2e8, tenant: 1, stream: 4 },
    task(1.2e9, 2, 2, 0, 2, 33),
    task(1.2e9, 3, 1, 0, 4),
    task(2e9, 3, 1, 4, 5),
  ];
  await sendFrame(page, encodeFrame(1, 3e9, { gauges: [MiB, MiB, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1], records, names }));
  const facts = (number: number, phase: string, more: object) => ({
    ...{ number, id: `id${number}`, name: number === 2 ? 'serve' : 'train', phase, submittedNs: 1e9, startedNs: number === 2 ? 0 : 1.1e9, finishedNs: 0 },
    ...more,
  });
  const rows = [
    facts(1, 'Running', { policy: 'Guaranteed', sharePpm: 500_000, priority: 2, memoryBytes: MiB, gpuNs: 0, paced: 0 }),
    facts(2, 'Queued', { policy: 'BestEffort', detail: 'asked 100, available 7' }),
    facts(3, 'Suspended', { policy: 'Burstable' }),
  ];
  await sendMessage(page, { type: 'tasks', tNs: 3e9, rows });
  await expect(panel(page)).toHaveAttribute('data-tasks', '3');
}
