// A sound's waveform above its spectrogram over one time axis.

import { type Look } from '@pygpukit/core';
import { el, setText } from '../dom.js';
import { Pane } from '../pane.js';
import { type Theme } from '../theme.js';
import { AXIS_HEIGHT, drawAxis } from '../timed.js';

const [WAVE, SPECTROGRAM] = [64, 112];

export class SoundPicture {
  readonly element = el('div', 'gk-sound-picture');
  private readonly wave: Pane;
  private readonly spectrogram: Pane;
  private readonly top = el('span', 'gk-sound-top');
  private image: HTMLCanvasElement | null = null;
  private drawn: Look | null = null;

  constructor(redraw: () => void) {
    this.wave = new Pane('Waveform', WAVE, redraw);
    this.spectrogram = new Pane('Spectrogram', SPECTROGRAM + AXIS_HEIGHT, redraw);
    this.element.append(this.wave.canvas, this.spectrogram.canvas, this.top);
  }

  /** frames: of the whole sound, of which the look may know a part. */
  draw(theme: Theme, look: Look | null, frames: number, rate: number): void {
    const span = Math.max(1, frames);
    setText(this.top, `${(rate / 2000).toFixed(1)} kHz`);
    this.wave.draw((context, width, height) => {
      context.fillStyle = theme.grid;
      context.fillRect(0, height / 2, width, 1);
      if (look) drawWave(context, theme, look, (width * look.first) / span, (width * look.frames) / span, height);
    });
    if (look !== this.drawn) this.image = look && paint(look);
    this.drawn = look;
    this.spectrogram.draw((context, width, height) => {
      context.fillStyle = theme.well;
      context.fillRect(0, 0, width, SPECTROGRAM);
      if (look && this.image) context.drawImage(this.image, (width * look.first) / span, 0, (width * look.frames) / span, SPECTROGRAM);
      context.save();
      context.beginPath();
      context.rect(0, SPECTROGRAM, width, height);
      context.clip();
      drawAxis(context, width, height, theme, { fromNs: 0, toNs: (span / rate) * 1e9 }, Infinity);
      context.restore();
    });
  }

  dispose(): void {
    this.wave.dispose();
    this.spectrogram.dispose();
  }
}

/** Each column from its lowest to its highest sample; the loudest fills the height. */
function drawWave(context: CanvasRenderingContext2D, theme: Theme, { bounds, columns, frames }: Look, x: number, width: number, height: number): void {
  const peak = bounds.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9);
  const y = (value: number): number => height / 2 - (value / peak) * (height / 2 - 1);
  // Columns are whole numbers of samples: the last ones may have none.
  const step = (width * columns * Math.ceil(frames / columns)) / frames / columns;
  context.fillStyle = theme.used;
  for (let i = 0; i < columns && i * step < width; i++) {
    const [low = 0, high = 0] = [bounds[i], bounds[columns + i]];
    context.fillRect(x + i * step, y(high), Math.max(step, 0.6) + 0.3, Math.max(1, y(low) - y(high)));
  }
}

function paint({ levels, colours, columns, rows, frames }: Look): HTMLCanvasElement {
  const canvas = document.createElement('canvas');
  const used = Math.max(1, Math.min(columns, Math.ceil(frames / Math.ceil(frames / columns))));
  [canvas.width, canvas.height] = [used, rows];
  const context = canvas.getContext('2d');
  if (!context) return canvas;
  const image = context.createImageData(used, rows);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < used; column++) {
      const [from, to] = [3 * (levels[row * columns + column] ?? 0), 4 * (row * used + column)];
      image.data.set(colours.subarray(from, from + 3), to);
      image.data[to + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}
