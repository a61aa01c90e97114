/** Cancel requests of this page. All cards of a job show a request until the job has ended. */

import { Signal } from '@lumino/signaling';
import type { ICancelRequest, ICancelRequests, IRest } from '../tokens';

export class CancelRequests implements ICancelRequests {
  constructor(
    private readonly _cancel: IRest['cancel'],
    private readonly _now: () => number = () => Date.now() / 1000
  ) {}

  readonly changed = new Signal<this, string>(this);

  get(job: string): ICancelRequest | null {
    return this._requests.get(job) ?? null;
  }

  async request(job: string, why: string): Promise<void> {
    const request = { since: this._now() };
    this._requests.set(job, request);
    this.changed.emit(job);
    try {
      await this._cancel(job, why);
    } catch (problem) {
      // Keep a newer request.
      if (this._requests.get(job) === request) {
        this.remove(job);
      }
      throw problem;
    }
  }

  remove(job: string): void {
    if (this._requests.delete(job)) {
      this.changed.emit(job);
    }
  }

  private readonly _requests = new Map<string, ICancelRequest>();
}
