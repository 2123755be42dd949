// Whether anybody looks: true while at least one view is on screen in a page that is in front.

export class Visibility {
  private readonly onScreen = new Map<Element, boolean>();
  private readonly observer: IntersectionObserver;
  private told = false;

  constructor(private readonly tell: (visible: boolean) => void) {
    this.observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (this.onScreen.has(entry.target)) this.onScreen.set(entry.target, entry.isIntersecting);
      }
      this.update();
    });
  }

  add(view: Element): void {
    if (this.onScreen.size === 0) document.addEventListener('visibilitychange', this.update);
    this.onScreen.set(view, false);
    this.observer.observe(view);
  }

  remove(view: Element): void {
    this.observer.unobserve(view);
    this.onScreen.delete(view);
    if (this.onScreen.size === 0) document.removeEventListener('visibilitychange', this.update);
    this.update();
  }

  private readonly update = (): void => {
    const visible = document.visibilityState === 'visible' && [...this.onScreen.values()].includes(true);
    if (visible === this.told) return;
    this.told = visible;
    this.tell(visible);
  };
}
