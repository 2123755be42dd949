// The notebook's cells, by the ids that the kernel knows them by: the lab extension writes each cell's into the page.

const FLASH_MS = 1200;

/** Shows a cell in the notebook that this view is in; false when the page does not have it. */
export function revealCell(from: HTMLElement, id: string): boolean {
  const cell = findCell(from, id);
  if (!cell) return false;
  cell.scrollIntoView({ block: 'center' });
  cell.classList.add('gk-revealed');
  setTimeout(() => cell.classList.remove('gk-revealed'), FLASH_MS);
  return true;
}

/** The cell with this id in the view's notebook. A prompt's number would not do: cells keep it when their kernel is another one. */
export function findCell(from: HTMLElement, id: string): HTMLElement | null {
  if (id === '') return null;
  const cells = notebookOf(from)?.querySelectorAll<HTMLElement>('[data-gk-cell]') ?? [];
  return [...cells].find(({ dataset }) => dataset['gkCell'] === id) ?? null;
}

/** The notebook that a view is in, or that the pane around it names; of one elsewhere the only one of the page, since a copy has the same ids. */
function notebookOf(view: HTMLElement): Element | null {
  const own = view.closest('.jp-Notebook');
  if (own) return own;
  const named = view.closest<HTMLElement>('[data-gk-notebook]')?.dataset['gkNotebook'];
  if (named !== undefined) return document.getElementById(named);
  const [only = null, ...others] = document.querySelectorAll('.jp-Notebook');
  return others.length > 0 ? null : only;
}
