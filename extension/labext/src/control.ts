// The page's end of the control channel, version 1 (docs/seams.md): one comm a request, so that no state outlives it.

import { type Kernel } from '@jupyterlab/services';
import { type JSONObject, type JSONValue } from '@lumino/coreutils';

const TARGET = 'pygpukit.control.v1';
const TIMEOUT_MS = 5000;

/** Sends one request and resolves to its result. Rejects with one sentence for the user. */
export async function request(kernel: Kernel.IKernelConnection, action: string, args: JSONObject = {}): Promise<JSONObject> {
  const comm = kernel.createComm(TARGET);
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

function isObject(value: JSONValue | undefined): value is JSONObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parseAnswer(data: JSONValue): JSONObject | Error {
  if (isObject(data) && data['ok'] === true && isObject(data['result'])) return data['result'];
  if (isObject(data) && data['ok'] === false) return new Error(`The kernel refused: ${String(data['error'])}`);
  return new Error('The kernel sent an answer that is not of control channel version 1.');
}
