
import { isAbort } from '../api/errors';

export class Turn {
  /**
   * @param onBusy - Called when a read starts and when none is in progress any more.
   * @param onFailure - Called with the error of the current read.
   */
  constructor(
    private readonly _onBusy: (busy: boolean) => void,
    private readonly _onFailure: (error: unknown) => void
  ) {}

  get busy(): boolean {
    return this._now !== null;
  }

  /**
   * Read, then apply the result unless a newer read has started; returns whether it was applied.
   */
  async take(read: (signal: AbortSignal) => Promise<() => void>): Promise<boolean> {
    this._now?.abort();
    if (this._over) {
      return false;
    }
    const now = (this._now = new AbortController());
    this._onBusy(true);
    try {
      const done = await read(now.signal);
      if (this._now === now) {
        done();
        return true;
      }
    } catch (error) {
      if (this._now === now && !isAbort(error)) {
        this._onFailure(error);
      }
    } finally {
      if (this._now === now) {
        this._now = null;
        this._onBusy(false);
      }
    }
    return false;
  }

  /** Abort the current read and reject later ones. */
  end(): void {
    this._over = true;
    this._now?.abort();
    this._now = null;
  }

  private _now: AbortController | null = null;
  private _over = false;
}
