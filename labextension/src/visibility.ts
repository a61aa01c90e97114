/** Observe whether an output is visible: in the viewport or near it, on a visible page. */

import type { IDisposable } from '@lumino/disposable';

export class VisibilityObserver implements IDisposable {
  /** @param onChange - Called once at the start and after each change. */
  constructor(
    node: HTMLElement,
    private readonly onChange: (visible: boolean) => void
  ) {
    this._inView = typeof IntersectionObserver === 'undefined';
    if (!this._inView) {
      this._observer = new IntersectionObserver(
        entries => {
          this._inView = entries.at(-1)?.isIntersecting ?? false;
          this.update();
        },
        // Load slightly before the output scrolls into view.
        { rootMargin: '200px' }
      );
      this._observer.observe(node);
    }
    document.addEventListener('visibilitychange', this.update);
    this.update();
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    this._disposed = true;
    this._observer?.disconnect();
    this._observer = null;
    document.removeEventListener('visibilitychange', this.update);
  }

  private readonly update = (): void => {
    this.onChange(this._inView && document.visibilityState === 'visible');
  };

  private _inView: boolean;
  private _disposed = false;
  private _observer: IntersectionObserver | null = null;
}
