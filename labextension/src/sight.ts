/** Observe whether an output is visible: in the viewport or near it, on a visible page. */

import type { IDisposable } from '@lumino/disposable';

export class Sight implements IDisposable {
  /** @param onChange - Called once at the start and after each change. */
  constructor(
    node: HTMLElement,
    private readonly tell: (visible: boolean) => void
  ) {
    this._seen = typeof IntersectionObserver === 'undefined';
    if (!this._seen) {
      this._observer = new IntersectionObserver(
        entries => {
          this._seen = entries.at(-1)?.isIntersecting ?? false;
          this.look();
        },
        // Load slightly before the output scrolls into view.
        { rootMargin: '200px' }
      );
      this._observer.observe(node);
    }
    document.addEventListener('visibilitychange', this.look);
    this.look();
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    this._disposed = true;
    this._observer?.disconnect();
    this._observer = null;
    document.removeEventListener('visibilitychange', this.look);
  }

  private readonly look = (): void => {
    this.tell(this._seen && document.visibilityState === 'visible');
  };

  private _seen: boolean;
  private _disposed = false;
  private _observer: IntersectionObserver | null = null;
}
