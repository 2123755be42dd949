// An open notebook in the lab, driven through the lab's own commands and kernel connection.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Page, expect } from '@playwright/test';

/** No test needs a busy cell for so long; one that fails leaves it to those that follow no longer. */
const BUSY_S = 120;
const ASK_MS = 5_000;

/** The part of the lab's application object that the tests use. */
interface Lab {
  readonly commands: { execute(id: string, args?: object): Promise<unknown>; label(id: string): string };
  readonly shell: {
    readonly currentWidget: NotebookPanel;
    widgets(area: 'main'): Iterable<{ readonly id: string }>;
    add(widget: { readonly id: string }, area: 'main', options: { mode: string; ref: string }): void;
    activateById(id: string): void;
  };
}

interface Output {
  readonly output_type: string;
  readonly ename?: string;
  readonly evalue?: string;
}

interface Cell {
  readonly cell_type: string;
  readonly source: string | string[];
  readonly outputs?: Output[];
}

interface NotebookPanel {
  readonly id: string;
  readonly content: { activeCellIndex: number; readonly widgets: { readonly node: HTMLElement }[] };
  readonly model: { toJSON(): { cells: Cell[] } };
  readonly sessionContext: {
    readonly ready: Promise<void>;
    readonly session: { readonly kernel: Kernel };
    changeKernel(options: { name: string }): Promise<unknown>;
  };
}

interface Kernel {
  readonly info: Promise<unknown>;
  readonly supportsSubshells: boolean;
  readonly iopubMessage: { connect(told: (kernel: Kernel, message: { header: { msg_type: string }; content: { comm_id?: string } }) => void): void };
  hasComm(id: string): boolean;
  createComm(target: string): Comm;
  requestExecute(content: { code: string; store_history: boolean }): Future;
  requestKernelInfo(): Promise<unknown>;
}

interface Comm {
  readonly commId: string;
  readonly isDisposed: boolean;
  readonly subshellStarted?: Promise<void>;
  onMsg: (message: { content: { data: unknown } }) => void;
  open(): unknown;
  send(data: object): unknown;
}

interface Future {
  onIOPub: (message: { header: { msg_type: string }; content: { text?: string; evalue?: string } }) => void;
  readonly done: Promise<unknown>;
}

declare global {
  interface Window {
    readonly jupyterapp: Lab;
    run?: { started: boolean; ended: boolean; printed: string };
    opened?: Set<string>;
  }
}

export class NotebookPage {
  /** What must stay empty: console errors, uncaught errors, and requests that leave this machine. */
  readonly faults: string[] = [];
  /** Messages that a comm brought to the page so far. */
  commMessages = 0;
  /** Where the signs are that end busy cells. */
  private readonly folder = mkdtempSync(join(tmpdir(), 'pygpukit-busy-'));
  private signs = 0;

  constructor(readonly page: Page) {
    page.on('close', () => rmSync(this.folder, { recursive: true, force: true }));
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
    expect(await this.execute("print('ready')")).toBe('ready\n');
  }

  async command(id: string): Promise<void> {
    await this.page.evaluate((name) => void window.jupyterapp.commands.execute(name), id);
  }

  /** Brings the notebook to the front of what was opened beside it: what is run is run there. */
  async toFront(): Promise<void> {
    await this.page.evaluate(() => {
      const { shell } = window.jupyterapp;
      const notebook = [...shell.widgets('main')].find((widget) => 'sessionContext' in widget);
      if (!notebook) throw new Error('No notebook is open.');
      shell.activateById(notebook.id);
    });
  }

  /** Runs every cell and waits for the end. Throws what a cell raised beside these errors, which the notebook shows. */
  async runAll(shown: readonly string[] = []): Promise<void> {
    await this.page.evaluate(() => window.jupyterapp.commands.execute('notebook:run-all-cells'));
    if (shown.length > 0) await this.execute('pass'); // the lab's own waiting ends with the first error
    expect((await this.raised()).map((one) => (shown.includes(one.split(':')[0] ?? '') ? one.split(':')[0] : one))).toEqual(shown);
  }

  async expectNoErrors(): Promise<void> {
    expect(await this.raised()).toEqual([]);
  }

  private raised(): Promise<string[]> {
    return this.page.evaluate(() =>
      window.jupyterapp.shell.currentWidget.model
        .toJSON()
        .cells.flatMap(({ outputs }) => outputs ?? [])
        .filter((output) => output.output_type === 'error')
        .map(({ ename, evalue }) => `${ename}: ${evalue}`),
    );
  }

  /** Switches a setting in the lab's editor of settings, which is closed again. */
  async set(plugin: { readonly id: string; readonly title: string }, key: string, wanted: boolean): Promise<void> {
    const saved = this.page.waitForResponse((one) => one.request().method() === 'PUT' && decodeURIComponent(one.url()).includes(`/api/settings/${plugin.id}`));
    await this.page.evaluate((query) => window.jupyterapp.commands.execute('settingeditor:open', { query }), plugin.title);
    await this.page.locator('.jp-PluginList-entry', { hasText: plugin.title }).click();
    await this.page.locator(`input[type=checkbox][id$="_${key}"]`).setChecked(wanted);
    await saved;
    await this.page.evaluate(() => window.jupyterapp.commands.execute('application:close'));
  }

  async changeKernel(name: string): Promise<void> {
    await this.page.evaluate(async (wanted) => {
      await window.jupyterapp.shell.currentWidget.sessionContext.changeKernel({ name: wanted });
    }, name);
  }

  async save(): Promise<void> {
    await this.page.evaluate(() => window.jupyterapp.commands.execute('docmanager:save'));
  }

  /** Runs code in the notebook's kernel and resolves to what it printed. */
  async execute(code: string): Promise<string> {
    await this.start(code);
    return this.finish();
  }

  /** Begins to run code and resolves when the kernel has begun. One run at a time. */
  async start(code: string): Promise<void> {
    await this.page.evaluate((source) => {
      const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
      const run = { started: false, ended: false, printed: '' };
      window.run = run;
      const future = kernel.requestExecute({ code: source, store_history: false });
      future.onIOPub = ({ header, content }) => {
        if (header.msg_type === 'execute_input') run.started = true;
        if (header.msg_type === 'stream') run.printed += content.text ?? '';
        if (header.msg_type === 'error') run.printed += `raised: ${content.evalue ?? ''}`;
      };
      void future.done.then(() => (run.ended = true));
    }, code);
    await this.whileAsked(() => this.page.waitForFunction(() => window.run?.started, undefined, { timeout: 60_000 }));
  }

  /** Begins to run code, and more of it again and again until finish(): busy for as long as a test needs it, however slow the machine is. */
  async keepBusy(first = '', again = 'pass'): Promise<void> {
    const condition = `not _os.path.exists(${JSON.stringify(this.sign(++this.signs))}) and _time.monotonic() < _end`;
    const imports = `import os as _os, time as _time\n_end = _time.monotonic() + ${BUSY_S}`;
    await this.start(`${imports}\n${first}\nwhile ${condition}:\n    ${again}\n    _time.sleep(0.02)`);
  }

  private sign(number: number): string {
    return join(this.folder, String(number));
  }

  /**
   * Does something with the kernel asked for its info every few seconds meanwhile: ipykernel before 7.4 leaves a message unread now and
   * then, until the next one comes (ipykernel 1554); a hundred cells meet that, and one in many starts of a kernel.
   */
  async whileAsked(act: () => Promise<unknown>): Promise<void> {
    const ask = () => this.page.evaluate(() => void window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestKernelInfo());
    const asking = setInterval(() => void ask().catch(() => undefined), ASK_MS);
    await act().finally(() => clearInterval(asking));
  }

  /** Whether the code of the last start() still runs. The lab's kernel status would not do: a subshell's work changes it. */
  async busy(): Promise<boolean> {
    return this.page.evaluate(() => window.run?.ended === false);
  }

  /** Whether the kernel answers a comm while a cell runs; ipykernel before 7 does not. */
  async subshells(): Promise<boolean> {
    return this.page.evaluate(async () => {
      const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
      await kernel.info;
      return kernel.supportsSubshells;
    });
  }

  /** From now on notes which comms the kernel opens; each is a widget's model in the page, or what one is made of. */
  async noteComms(): Promise<void> {
    await this.page.evaluate(() => {
      const opened = (window.opened = new Set<string>());
      window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.iopubMessage.connect((_, { header, content }) => {
        if (header.msg_type === 'comm_open' && content.comm_id) opened.add(content.comm_id);
      });
    });
  }

  /** How many comms the kernel has opened since, and how many of them the page still has. */
  async comms(): Promise<{ opened: number; open: number }> {
    return this.page.evaluate(() => {
      const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
      const ids = [...(window.opened ?? [])];
      return { opened: ids.length, open: ids.filter((id) => kernel.hasComm(id)).length };
    });
  }

  /** Lets the busy cell end, also one that was begun before the page was loaded again. */
  release(): void {
    writeFileSync(this.sign(this.signs), '');
  }

  /** Waits for the end of the code that was begun, and resolves to what it printed. */
  async finish(): Promise<string> {
    this.release();
    await this.page.waitForFunction(() => window.run?.ended, undefined, { timeout: 60_000 });
    return this.page.evaluate(() => window.run?.printed ?? '');
  }

  /** Index of the first code cell that contains a text. */
  async cellWith(text: string): Promise<number> {
    const index = await this.page.evaluate(
      (wanted) =>
        window.jupyterapp.shell.currentWidget.model
          .toJSON()
          .cells.findIndex(({ cell_type, source }) => cell_type === 'code' && [source].flat().join('').includes(wanted)),
      text,
    );
    expect(index, `a code cell with ${text}`).toBeGreaterThanOrEqual(0);
    return index;
  }

  /** Runs the cells before one and waits for their end, or begins to run that one and does not wait. */
  async runAbove(index: number): Promise<void> {
    await this.activate(index);
    await this.page.evaluate(() => window.jupyterapp.commands.execute('notebook:run-all-above'));
  }

  async beginCell(index: number): Promise<void> {
    await this.activate(index);
    await this.page.evaluate(() => void window.jupyterapp.commands.execute('notebook:run-cell'));
  }

  private async activate(index: number): Promise<void> {
    await this.page.evaluate((i) => {
      window.jupyterapp.shell.currentWidget.content.activeCellIndex = i;
    }, index);
  }

  async scrollTo(index: number): Promise<void> {
    await this.page.evaluate((i) => {
      const { content } = window.jupyterapp.shell.currentWidget;
      content.activeCellIndex = i;
      content.widgets[i]?.node.scrollIntoView({ block: 'start' });
    }, index);
  }

  /** Opens the outputs of the cells with these texts in one column right of the notebook, one below the other. */
  async viewOutputsBeside(texts: readonly string[]): Promise<void> {
    for (const [place, text] of texts.entries()) {
      // The last such cell: an import may name it before.
      const index = await this.cellWith(`\n${text}(`);
      await this.page.evaluate(
        async ({ i, below }) => {
          const { commands, shell } = window.jupyterapp;
          const notebook = shell.currentWidget;
          notebook.content.activeCellIndex = i;
          const views = [...shell.widgets('main')];
          await commands.execute('notebook:create-output-view');
          const created = [...shell.widgets('main')].find((widget) => !views.includes(widget));
          const above = views.findLast((widget) => widget.id !== notebook.id);
          if (!created) throw new Error('The lab made no output view.');
          if (below && above) shell.add(created, 'main', { mode: 'split-bottom', ref: above.id });
          else shell.add(created, 'main', { mode: 'split-right', ref: notebook.id });
          shell.activateById(notebook.id);
        },
        { i: index, below: place > 0 },
      );
    }
  }
}
