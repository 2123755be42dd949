// Whether anybody looks: true while at least one view is on screen in a page that is in front.

/** ipykernel 7.0 to 7.3 may leave a message unread until the next one comes: who hears nothing for so long says it again. */
const REPEAT_MS = 3000;
const LONGEST_MS = 3_600_000;

export class Visibility {
  private readonly onScreen = new Map<Element, boolean>();
  private readonly observer: IntersectionObserver;
  private reported = false;
  private timer = 0;

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

  /** Something came: the kernel knows that somebody looks. */
  heard(): void {
    window.clearTimeout(this.timer);
  }

  private readonly update = (): void => {
    const visible = document.visibilityState === 'visible' && [...this.onScreen.values()].includes(true);
    if (visible === this.reported) return;
    this.reported = visible;
    this.say(visible, REPEAT_MS);
  };

  /** Ever more rarely, as a kernel that answers between cells only has it all to answer when its cell ends. */
  private say(visible: boolean, waitMs: number): void {
    window.clearTimeout(this.timer);
    this.tell(visible);
    if (visible) this.timer = window.setTimeout(() => this.say(true, Math.min(2 * waitMs, LONGEST_MS)), waitMs);
  }
}
