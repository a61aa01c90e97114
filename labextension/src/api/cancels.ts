/**
 * Which jobs this page has asked to end, until the server says that they have: so that every card of
 * a job knows at once. Whether it worked, only a job's view says.
 */

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
      // A newer request is not ours to take back.
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
