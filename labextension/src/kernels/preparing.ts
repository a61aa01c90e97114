/** How far a kernel's files are while it has no job: only the server that starts it knows. */

import type { IDisposable } from '@lumino/disposable';
import type { IKernelStart } from '../api/list_types';

/** Milliseconds between two looks. */
export const LOOK = 1000;

export class Preparing implements IDisposable {
  /** @param tell - hears each time how far it is; never of an empty word. */
  constructor(
    private readonly _starts: () => Promise<readonly IKernelStart[]>,
    private readonly _kernel: string,
    private readonly _documents: () => readonly string[],
    private readonly _tell: (words: string) => void
  ) {
    void this._look();
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    this._disposed = true;
    window.clearTimeout(this._timer);
  }

  private async _look(): Promise<void> {
    const starts = await this._starts().catch(() => []);
    if (this._disposed) {
      return;
    }
    const documents = this._documents();
    const words = starts.find(
      ({ kernel, notebook }) => kernel === this._kernel && documents.includes(notebook)
    )?.words;
    if (words) {
      this._tell(words);
    }
    this._timer = window.setTimeout(() => {
      void this._look();
    }, LOOK);
  }

  private _timer = 0;
  private _disposed = false;
}
