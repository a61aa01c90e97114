/** A scroll bar by bytes: the position of the visible lines in the whole log. */

/** Minimum size of the thumb, as a fraction of the bar. */
const MIN_THUMB = 0.04;

export class Scrollbar {
  /**
   * @param label - Label for screen readers.
   * @param onGo - Called with the fraction, 0 to 1, to go to.
   */
  constructor(
    label: string,
    private readonly _onGo: (part: number) => void
  ) {
    this.node = document.createElement('div');
    this.node.className = 'jp-Submarine-log-bar';
    this.node.setAttribute('role', 'scrollbar');
    this.node.setAttribute('aria-label', label);
    this.node.setAttribute('aria-orientation', 'vertical');
    this.node.setAttribute('aria-valuemin', '0');
    this.node.setAttribute('aria-valuemax', '100');
    this._thumb = document.createElement('div');
    this._thumb.className = 'jp-Submarine-log-thumb';
    this.node.append(this._thumb);
    this.node.addEventListener('pointerdown', event => {
      this._press(event);
    });
    this.set(0, 1);
  }

  readonly node: HTMLElement;

  /** Set the visible fraction: `shown` of the whole, starting at `from`, both 0 to 1. */
  set(from: number, shown: number): void {
    this._shown = Math.min(1, Math.max(MIN_THUMB, shown));
    const free = 1 - this._shown;
    const rest = Math.max(1e-9, 1 - shown);
    this._at = Math.min(1, Math.max(0, from / rest)) * free;
    if (!this._dragging) {
      this._place(this._at);
    }
    this.node.classList.toggle('jp-mod-full', shown >= 1);
    this.node.setAttribute('aria-valuenow', String(Math.round(Math.min(1, from / rest) * 100)));
  }

  dispose(): void {
    clearTimeout(this._timer ?? undefined);
  }

  private _place(at: number): void {
    this._thumb.style.top = `${at * 100}%`;
    this._thumb.style.height = `${this._shown * 100}%`;
  }

  private _press(event: PointerEvent): void {
    if (event.button !== 0) {
      return;
    }
    event.preventDefault();
    const box = this.node.getBoundingClientRect();
    const at = (event.clientY - box.top) / box.height;
    const inside = at >= this._at && at <= this._at + this._shown;
    const grip = inside ? at - this._at : this._shown / 2;
    this.node.setPointerCapture(event.pointerId);
    this._dragging = true;
    const move = (to: PointerEvent) => {
      const free = 1 - this._shown;
      const place = (to.clientY - box.top) / box.height - grip;
      const bounded = Math.min(free, Math.max(0, place));
      this._place(bounded);
      this._goSoon(free > 0 ? bounded / free : 0);
    };
    const stop = () => {
      this._dragging = false;
      this.node.removeEventListener('pointermove', move);
      this.node.removeEventListener('pointerup', stop);
      this.node.removeEventListener('pointercancel', stop);
    };
    this.node.addEventListener('pointermove', move);
    this.node.addEventListener('pointerup', stop);
    this.node.addEventListener('pointercancel', stop);
    if (!inside) {
      move(event);
    }
  }

  /** Limit the rate of requests. */
  private _goSoon(part: number): void {
    this._target = part;
    this._timer ??= setTimeout(() => {
      this._timer = null;
      this._onGo(this._target);
    }, 80);
  }

  private readonly _thumb: HTMLElement;
  private _at = 0;
  private _shown = 1;
  private _dragging = false;
  private _target = 0;
  private _timer: ReturnType<typeof setTimeout> | null = null;
}
