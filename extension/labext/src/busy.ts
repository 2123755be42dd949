// A kernel whose cell runs is busy, whatever else it has answered meanwhile: the lab takes the end of any request for the cell's.

import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel, KernelMessage } from '@jupyterlab/services';

/** What the lab's kernel connection has, and does not tell of. */
interface Connection {
  _updateStatus?(status: Kernel.Status): void;
}

export function staysBusy({ sessionContext }: Pick<NotebookPanel, 'sessionContext'>): void {
  let running = ''; // the request by which the main shell runs a cell
  sessionContext.kernelChanged.connect(() => (running = ''));
  sessionContext.statusChanged.connect((_, status) => {
    if (status !== 'busy' && status !== 'idle') running = '';
  });
  sessionContext.iopubMessage.connect((_, { header, parent_header, content }) => {
    const { msg_id: id = '', subshell_id: subshell } = parent_header as Partial<KernelMessage.IHeader>;
    if (header.msg_type === 'execute_input' && !subshell) running = id;
    if (header.msg_type !== 'status' || (content as { execution_state: string }).execution_state !== 'idle') return;
    if (running === id) running = '';
    if (running) (sessionContext.session?.kernel as Connection | null | undefined)?._updateStatus?.('busy');
  });
}
