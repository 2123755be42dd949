// The cells of the notebook that is open in the lab: their text, language, runs and colours.

import { type Locator, type Page } from '@playwright/test';

interface CellModel {
  mimeType: string;
  readonly sharedModel: { getSource(): string; setSource(text: string): void };
}

interface Position {
  readonly line: number;
  readonly column: number;
}

interface Editor {
  getCursorPosition(): Position;
  setCursorPosition(position: Position): void;
}

interface Content {
  activeCellIndex: number;
  readonly widgets: { readonly model: CellModel; readonly editor: Editor | null }[];
}

export class Cells {
  constructor(readonly page: Page) {}

  all(): Locator {
    return this.page.locator('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook .jp-Cell');
  }

  at(index: number): Locator {
    return this.all().nth(index);
  }

  private content<T>(read: (content: Content, argument: { index: number; text: string }) => T, index: number, text = ''): Promise<T> {
    return this.page.evaluate(
      ([code, argument]) => {
        const { shell } = window.jupyterapp;
        const open = [shell.currentWidget, ...shell.widgets('main')] as unknown as { content: Content }[];
        const content = open.find((one) => one.content.widgets)?.content;
        if (!content) throw new Error('No notebook is open.');
        // The function travels as text: it uses its arguments only.
        return (0, eval)(`(${code})`)(content, argument) as T;
      },
      [read.toString(), { index, text }] as const,
    );
  }

  mime(index: number): Promise<string> {
    return this.content((content, { index: at }) => content.widgets[at]?.model.mimeType ?? '', index);
  }

  write(index: number, source: string): Promise<void> {
    return this.content((content, { index: at, text }) => content.widgets[at]?.model.sharedModel.setSource(text), index, source);
  }

  source(index: number): Promise<string> {
    return this.content((content, { index: at }) => content.widgets[at]?.model.sharedModel.getSource() ?? '', index);
  }

  /** Makes a cell the active one with its cursor there; line and column count from 0. */
  async setCursor(index: number, line: number, column: number): Promise<void> {
    await this.activate(index);
    await this.content(
      (content, { index: at, text }) => content.widgets[at]?.editor?.setCursorPosition(JSON.parse(text) as Position),
      index,
      JSON.stringify({ line, column }),
    );
  }

  cursorLine(index: number): Promise<number> {
    return this.content((content, { index: at }) => (content.widgets[at]?.editor?.getCursorPosition().line ?? -1) + 1, index);
  }

  activate(index: number): Promise<void> {
    return this.content((content, { index: at }) => {
      content.activeCellIndex = at;
    }, index);
  }

  /** Runs a cell to its end. */
  async run(index: number): Promise<void> {
    await this.activate(index);
    await this.page.evaluate(() => window.jupyterapp.commands.execute('notebook:run-cell'));
  }

  /** Restarts the kernel of the notebook, whatever stands in front. */
  restartKernel(): Promise<void> {
    return this.page.evaluate(() => {
      const open = [...window.jupyterapp.shell.widgets('main')] as unknown as { sessionContext?: { restartKernel(): Promise<void> } }[];
      const context = open.find(({ sessionContext }) => sessionContext)?.sessionContext;
      if (!context) throw new Error('No notebook is open.');
      return context.restartKernel();
    });
  }

  /** The colour of the first piece of the cell's text that is just this. */
  colour(index: number, text: string): Promise<string> {
    return this.at(index)
      .locator('.cm-line span')
      .getByText(text, { exact: true })
      .first()
      .evaluate((node) => getComputedStyle(node).color);
  }

  /** What a variable of the lab's theme is as a colour. */
  themeColour(name: string): Promise<string> {
    return this.page.evaluate((variable) => {
      const probe = document.body.appendChild(document.createElement('span'));
      probe.style.color = `var(${variable})`;
      const { color } = getComputedStyle(probe);
      probe.remove();
      return color;
    }, name);
  }
}
