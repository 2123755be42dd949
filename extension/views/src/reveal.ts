// Going to a notebook cell: the lab extension is asked first; without it the cell is found by its prompt.

const FLASH_MS = 1200;

/** Shows the cell with an execution count, in the notebook that this view is in; false when the page has none. */
export function revealCell(from: HTMLElement, count: number): boolean {
  if (count <= 0) return false;
  const event = new CustomEvent('pygpukit:reveal-cell', { bubbles: true, cancelable: true, detail: { count } });
  if (!from.dispatchEvent(event)) return true; // somebody took it
  const cell = findCell(from, count);
  if (!cell) return false;
  cell.scrollIntoView({ block: 'center' });
  cell.classList.add('gk-revealed');
  setTimeout(() => cell.classList.remove('gk-revealed'), FLASH_MS);
  return true;
}

/** The code cell with the prompt `[count]:` in the view's notebook. */
export function findCell(from: HTMLElement, count: number): HTMLElement | null {
  for (const prompt of notebookOf(from)?.querySelectorAll<HTMLElement>('.jp-CodeCell .jp-InputPrompt') ?? []) {
    if (prompt.textContent?.trim() === `[${count}]:`) return prompt.closest<HTMLElement>('.jp-CodeCell');
  }
  return null;
}

/** The notebook that a view is in, or that the pane around it names; of one elsewhere the only one of the page, since others have the same numbers. */
function notebookOf(view: HTMLElement): Element | null {
  const own = view.closest('.jp-Notebook');
  if (own) return own;
  const named = view.closest<HTMLElement>('[data-gk-notebook]')?.dataset['gkNotebook'];
  if (named !== undefined) return document.getElementById(named);
  const [only = null, ...others] = document.querySelectorAll('.jp-Notebook');
  return others.length > 0 ? null : only;
}
