// Colours for canvases, read from the panel's CSS so that the style sheet stays the one place that names them.

/** Categorical colours for owners: --gk-owner-0 to --gk-owner-7. */
const OWNER_COLOURS = 8;

export interface Theme {
  readonly surface: string;
  readonly text: string;
  readonly muted: string;
  readonly grid: string;
  readonly well: string;
  readonly used: string;
  readonly reserved: string;
  readonly owners: readonly string[];
  /** Indexed by task phase. */
  readonly phases: readonly string[];
  /** Below a lane while blocks of its tenant are in host memory. */
  readonly evicted: string;
  readonly font: string;
}

/** Marks the panel dark or light by the surface it is really on, then reads its colours. */
export function readTheme(panel: HTMLElement): Theme {
  panel.classList.toggle('gk-dark', isDark(getComputedStyle(panel).backgroundColor));
  const style = getComputedStyle(panel);
  const read = (name: string): string => style.getPropertyValue(name).trim();
  return {
    surface: style.backgroundColor,
    text: read('--gk-text'),
    muted: read('--gk-muted'),
    grid: read('--gk-grid'),
    well: read('--gk-well'),
    used: read('--gk-used'),
    reserved: read('--gk-reserved'),
    owners: Array.from({ length: OWNER_COLOURS }, (_, i) => read(`--gk-owner-${i}`)),
    phases: Array.from({ length: 10 }, (_, i) => read(`--gk-phase-${i}`)),
    evicted: read('--gk-evicted'),
    font: style.fontFamily,
  };
}

function isDark(colour: string): boolean {
  const [red = 255, green = 255, blue = 255] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
}

/** Calls back when the lab's theme or the system's preference changes. */
export function watchTheme(onChange: () => void): () => void {
  const observer = new MutationObserver(onChange);
  const attributeFilter = ['class', 'style', 'data-jp-theme-name', 'data-jp-theme-light'];
  observer.observe(document.body, { attributes: true, attributeFilter });
  observer.observe(document.documentElement, { attributes: true, attributeFilter });
  const dark = matchMedia('(prefers-color-scheme: dark)');
  dark.addEventListener('change', onChange);
  return () => {
    observer.disconnect();
    dark.removeEventListener('change', onChange);
  };
}

/** Reads a panel's colours once it is in the page, since it has no style before, and whenever they change. */
export function followTheme(panel: HTMLElement, onRead: (theme: Theme) => void): () => void {
  const read = (): void => {
    if (panel.isConnected) onRead(readTheme(panel));
  };
  const end = watchTheme(read);
  const shown = new ResizeObserver(() => {
    if (!panel.isConnected) return;
    shown.disconnect();
    read();
  });
  shown.observe(panel);
  return () => {
    shown.disconnect();
    end();
  };
}
