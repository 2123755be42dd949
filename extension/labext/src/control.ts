// The page's end of the control channel, version 1 (docs/seams.md): one comm a request, so that no state outlives it.

import type { Kernel } from '@jupyterlab/services';
import type { JSONObject, JSONValue } from '@lumino/coreutils';

const TARGET = 'pygpukit.control.v1';
const TIMEOUT_MS = 5000;
const SUBSHELL_MS = 1000;

/** Sends one request and resolves to its result. Rejects with one sentence for the user. */
export async function request(kernel: Kernel.IKernelConnection, action: string, args: JSONObject = {}): Promise<JSONObject> {
  const comm = kernel.createComm(TARGET);
  await subshellStarted(kernel, comm);
  let timer = 0;
  try {
    return await new Promise<JSONObject>((resolve, reject) => {
      timer = window.setTimeout(
        () => reject(new Error('The kernel has not answered yet: it answers when the running cell ends.')),
        TIMEOUT_MS,
      );
      comm.onClose = () => reject(new Error('This kernel does not know pygpukit: run "%load_ext pygpukit" in a cell first.'));
      comm.onMsg = (message) => {
        const answer = parseAnswer(message.content.data);
        if (answer instanceof Error) reject(answer);
        else resolve(answer);
      };
      comm.open();
      comm.send({ id: 1, action, args });
    });
  } finally {
    window.clearTimeout(timer);
    if (!comm.isDisposed) comm.close();
  }
}

/**
 * Waits for the comm's subshell: opened earlier, the comm would go to the main shell and wait behind the running cell.
 * A kernel without subshells answers there, between cells.
 */
export async function subshellStarted(kernel: Kernel.IKernelConnection, comm: Kernel.IComm): Promise<void> {
  await kernel.info;
  const { subshellStarted: started } = comm as { subshellStarted?: Promise<void> };
  if (!kernel.supportsSubshells || comm.commsOverSubshells === 'disabled' || !started) return;
  await Promise.race([started, new Promise((done) => window.setTimeout(done, SUBSHELL_MS))]);
}

export function isObject(value: JSONValue | undefined): value is JSONObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parseAnswer(data: JSONValue): JSONObject | Error {
  if (isObject(data) && data['ok'] === true && isObject(data['result'])) return data['result'];
  if (isObject(data) && data['ok'] === false) return new Error(`The kernel refused: ${String(data['error'])}`);
  return new Error('The kernel sent an answer that is not of control channel version 1.');
}
