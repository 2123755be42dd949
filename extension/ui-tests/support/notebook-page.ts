// An open notebook in the lab, driven through the lab's own commands and kernel connection.

import { type Page, expect } from '@playwright/test';

/** The part of the lab's application object that the tests use. */
interface Lab {
  readonly commands: { execute(id: string): Promise<unknown>; label(id: string): string };
  readonly shell: { readonly currentWidget: NotebookPanel };
}

interface NotebookPanel {
  readonly sessionContext: { readonly ready: Promise<void>; readonly session: { readonly kernel: Kernel } };
}

interface Kernel {
  readonly status: string;
  requestExecute(content: { code: string; store_history: boolean }): Future;
}

interface Future {
  onIOPub: (message: { header: { msg_type: string }; content: { text?: string; evalue?: string } }) => void;
  readonly done: Promise<unknown>;
}

declare global {
  interface Window {
    readonly jupyterapp: Lab;
  }
}

export class NotebookPage {
  /** What must stay empty: console errors, uncaught errors, and requests that leave this machine. */
  readonly faults: string[] = [];
  /** Messages that a comm brought to the page so far. */
  commMessages = 0;

  constructor(readonly page: Page) {
    page.on('console', (message) => {
      if (message.type() === 'error') this.faults.push(`console: ${message.text()} (${message.location().url})`);
    });
    page.on('pageerror', (error) => this.faults.push(`uncaught: ${error.message}`));
    page.on('request', (request) => this.checkAddress(request.url()));
    page.on('websocket', (socket) => {
      this.checkAddress(socket.url());
      socket.on('framereceived', ({ payload }) => {
        if (Buffer.from(payload).includes('comm_msg')) this.commMessages++;
      });
    });
  }

  private checkAddress(address: string): void {
    const url = new URL(address);
    if (['http:', 'https:', 'ws:', 'wss:'].includes(url.protocol) && url.hostname !== '127.0.0.1') {
      this.faults.push(`request to ${address}`);
    }
  }

  async open(url: string): Promise<void> {
    await this.page.goto(url);
    await expect(this.page.locator('.jp-NotebookPanel-notebook')).toBeVisible({ timeout: 60_000 });
    await this.page.evaluate(async () => {
      await window.jupyterapp.shell.currentWidget.sessionContext.ready;
    });
    await expect.poll(() => this.kernelStatus(), { timeout: 60_000 }).toBe('idle');
  }

  async command(id: string): Promise<void> {
    await this.page.evaluate((name) => void window.jupyterapp.commands.execute(name), id);
  }

  /** Runs every cell and waits for the end. Throws what a cell raised. */
  async runAll(timeoutMs = 150_000): Promise<void> {
    await this.page.evaluate((id) => window.jupyterapp.commands.execute(id), 'notebook:run-all-cells').catch(() => undefined);
    await expect.poll(() => this.kernelStatus(), { timeout: timeoutMs }).toBe('idle');
    const errors = this.page.locator('.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.error"]');
    expect(await errors.allInnerTexts()).toEqual([]);
  }

  kernelStatus(): Promise<string> {
    return this.page.evaluate(() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status);
  }

  /** Runs code in the notebook's kernel as a cell of its own and resolves to what it printed. */
  execute(code: string): Promise<string> {
    return this.page.evaluate(async (source) => {
      const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
      const future = kernel.requestExecute({ code: source, store_history: false });
      let printed = '';
      future.onIOPub = ({ header, content }) => {
        if (header.msg_type === 'stream') printed += content.text ?? '';
        if (header.msg_type === 'error') printed += `raised: ${content.evalue ?? ''}`;
      };
      await future.done;
      return printed;
    }, code);
  }
}
