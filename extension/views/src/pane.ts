// A canvas that is as sharp as the screen and as wide as its place.

export type Draw = (context: CanvasRenderingContext2D, width: number, height: number) => void;

export class Pane {
  readonly canvas = document.createElement('canvas');
  private readonly observer: ResizeObserver;
  private width = 0;

  constructor(
    label: string,
    private height: number,
    onResize: () => void,
  ) {
    this.canvas.className = 'gk-canvas';
    this.canvas.setAttribute('role', 'img');
    this.canvas.setAttribute('aria-label', label);
    this.canvas.style.height = `${height}px`;
    this.observer = new ResizeObserver(() => {
      const width = this.canvas.clientWidth;
      if (width === this.width) return;
      this.width = width;
      onResize();
    });
    this.observer.observe(this.canvas);
  }

  setHeight(height: number): void {
    if (height === this.height) return;
    this.height = height;
    this.canvas.style.height = `${height}px`;
  }

  get widthPx(): number {
    return this.width;
  }

  draw(paint: Draw): void {
    const context = this.canvas.getContext('2d');
    if (!context || this.width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    const pixelWidth = Math.round(this.width * ratio);
    const pixelHeight = Math.round(this.height * ratio);
    if (this.canvas.width !== pixelWidth || this.canvas.height !== pixelHeight) {
      this.canvas.width = pixelWidth;
      this.canvas.height = pixelHeight;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    paint(context, this.width, this.height);
  }

  dispose(): void {
    this.observer.disconnect();
  }
}
