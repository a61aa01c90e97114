/** One reading at a time: a newer one takes the place of the one before, whose answer is dropped. */

import { isAbort } from '../api/errors';

export class Turn {
  /**
   * @param onBusy - Told when a reading begins and when none is under way any more.
   * @param onFailure - Told what went wrong with the reading that counts.
   */
  constructor(
    private readonly _onBusy: (busy: boolean) => void,
    private readonly _onFailure: (error: unknown) => void
  ) {}

  get busy(): boolean {
    return this._now !== null;
  }

  /** Read, then do what the reading returns, unless a newer one began meanwhile; whether it did. */
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

  /** Give up what is under way, and begin nothing more. */
  end(): void {
    this._over = true;
    this._now?.abort();
    this._now = null;
  }

  private _now: AbortController | null = null;
  private _over = false;
}
