// The server that the other tests run against: it starts although somebody else took the port that was chosen for it.

import { createServer } from 'node:net';
import { expect, test } from '@playwright/test';
import { freePort, LabServer } from '../support/lab-server.ts';

test('a port that is taken is chosen again', async () => {
  const other = createServer();
  const taken = await new Promise<number>((resolve) => {
    other.listen(0, '127.0.0.1', () => resolve((other.address() as { port: number }).port));
  });
  const chosen: number[] = [];
  let server: LabServer | undefined;
  try {
    server = await LabServer.start('JupyterLab Light', '/', 'jupyterlab', {}, async () => {
      chosen.push(chosen.length ? await freePort() : taken);
      return chosen.at(-1) ?? 0;
    });
    expect(server.notebookUrl('00_tour.ipynb')).toContain(`127.0.0.1:${chosen.at(-1)}/`);
  } finally {
    await server?.stop();
    other.close();
  }
  expect(chosen[0]).toBe(taken);
  expect(chosen.length).toBeGreaterThan(1);
});
