// A spectrogram that moves on: the newest column is at the right.

import { el, setData, setText } from '../dom.js';
import { Pane } from '../pane.js';
import { type Theme, followTheme, readTheme } from '../theme.js';
import { AXIS_HEIGHT, drawAxis } from '../timed.js';

export interface Shape {
  readonly rate: number;
  readonly hop: number;
  readonly rows: number;
  readonly columns: number;
}

const HEIGHT = 160;

export class SpectrogramView {
  readonly element: HTMLElement;
  private readonly about = el('span', 'gk-device');
  private readonly top = el('span', 'gk-sound-top');
  private readonly message = el('p', 'gk-message', 'Nothing has been heard yet.');
  private readonly pane: Pane;
  private readonly image = document.createElement('canvas');
  private readonly ending: () => void;
  private theme: Theme;
  private shape: Shape | null = null;
  private colours = new Uint8Array(768);
  private end = 0;
  private frame = 0;

  constructor(host: HTMLElement) {
    this.pane = new Pane('Spectrogram of the last seconds', HEIGHT + AXIS_HEIGHT, () => this.draw());
    const picture = el('div', 'gk-sound-picture gk-moving', this.pane.canvas, this.top);
    this.element = el('section', 'gk-panel gk-spectrogram', el('header', 'gk-head', el('span', 'gk-title', 'Spectrogram'), this.about), this.message, picture);
    this.element.setAttribute('aria-label', 'Spectrogram');
    host.append(this.element);
    this.theme = readTheme(this.element);
    this.ending = followTheme(this.element, (theme) => {
      this.theme = theme;
      this.draw();
    });
  }

  /** What it is of; the picture begins anew. */
  begin(shape: Shape, colours: Uint8Array<ArrayBuffer>): void {
    this.shape = shape;
    this.colours = colours;
    this.end = 0;
    [this.image.width, this.image.height] = [shape.columns, shape.rows];
    setText(this.about, `${shape.rate} Hz \u00b7 the last ${((shape.columns * shape.hop) / shape.rate).toFixed(1)} s`);
    setText(this.top, `${(shape.rate / 2000).toFixed(1)} kHz`);
    this.draw();
  }

  /** Columns, each from its highest frequency down; the last is number end - 1. What is here already is left out. */
  add(levels: Uint8Array, end: number): void {
    if (!this.shape || end <= this.end) return;
    const { rows, columns } = this.shape;
    const count = Math.min(Math.floor(levels.length / rows), end - this.end, columns);
    const context = this.image.getContext('2d');
    if (!context || count === 0) return;
    context.globalCompositeOperation = 'copy'; // what is clear moves on, too
    context.drawImage(this.image, -count, 0);
    const image = context.createImageData(count, rows);
    const first = levels.length - count * rows;
    for (let column = 0; column < count; column++) {
      for (let row = 0; row < rows; row++) {
        const [from, to] = [3 * (levels[first + column * rows + row] ?? 0), 4 * (row * count + column)];
        image.data.set(this.colours.subarray(from, from + 3), to);
        image.data[to + 3] = 255;
      }
    }
    context.putImageData(image, columns - count, 0);
    this.end = end;
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  dispose(): void {
    cancelAnimationFrame(this.frame);
    this.ending();
    this.pane.dispose();
    this.element.remove();
  }

  private draw(): void {
    setData(this.element, { columns: this.end });
    this.message.hidden = this.end > 0;
    const { shape } = this;
    if (!shape) return;
    this.pane.draw((context, width, height) => {
      context.fillStyle = this.theme.well;
      context.fillRect(0, 0, width, HEIGHT);
      context.imageSmoothingEnabled = false; // a column is as it was computed
      context.drawImage(this.image, 0, 0, width, HEIGHT);
      context.save();
      context.beginPath();
      context.rect(0, HEIGHT, width, height);
      context.clip();
      const span = ((shape.columns * shape.hop) / shape.rate) * 1e9;
      drawAxis(context, width, height, this.theme, { fromNs: -span, toNs: 0 }, 0);
      context.restore();
    });
  }
}
