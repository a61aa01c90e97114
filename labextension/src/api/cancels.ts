/** Cancel requests of this page. All cards of a job show a request until the job has ended. */

import { Signal } from '@lumino/signaling';
import type { ICancelRequest, ICancels, IRest } from '../tokens';

export class Cancels implements ICancels {
  constructor(
    private readonly _cancel: IRest['cancel'],
    private readonly _now: () => number = () => Date.now() / 1000
  ) {}

  readonly changed = new Signal<this, string>(this);

  of(job: string): ICancelRequest | null {
    return this._requests.get(job) ?? null;
  }

  async ask(job: string, why: string): Promise<void> {
    const request = { since: this._now() };
    this._requests.set(job, request);
    this.changed.emit(job);
    try {
      await this._cancel(job, why);
    } catch (problem) {
      // Keep a newer request.
      if (this._requests.get(job) === request) {
        this.forget(job);
      }
      throw problem;
    }
  }

  forget(job: string): void {
    if (this._requests.delete(job)) {
      this.changed.emit(job);
    }
  }

  private readonly _requests = new Map<string, ICancelRequest>();
}
