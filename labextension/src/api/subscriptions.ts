/**
 * What the page has subscribed to, as it is said on the wire: begun, acknowledged, begun again.
 *
 * Does not know who listens (`channel.ts`) nor how a connection comes back (`socket.ts`).
 */

import type { ISubscription } from '../tokens';
import type { FeedMessage, IFeed } from './feed';
import type { ClientMessage } from './wire_types';

/** Acknowledge at the latest after so many bytes, or milliseconds. */
const ACK_BYTES = 128 * 1024;
const ACK_DELAY = 50;
/** The server lets a page have 64; cards leave some to a log that is opened after them. */
const MOST = 64;
const MOST_CARDS = 52;
/** Pause before a subscription that the server could not serve is begun again. */
const RETRY = 15_000;
const LONGEST_RETRY = 240_000;
/** What no second try makes right. That a job is not found may be: it may have just begun. */
const MISTAKES: ReadonlySet<string> = new Set(['usage', 'forbidden']);

/** One subscription of the page. */
export interface IEntry {
  readonly feed: IFeed;
  id: number;
  /** `over`: the server has said that nothing more will come. */
  state: 'waiting' | 'active' | 'failed' | 'over';
  unacknowledged: number;
  /** How often in a row the server could not serve it. */
  failures: number;
}

/** The connection, as far as subscriptions need one. */
interface IWire {
  readonly open: boolean;
  send(message: ClientMessage): void;
}

export class Subscriptions {
  constructor(private readonly _wire: IWire) {}

  get size(): number {
    return this._entries.size;
  }

  /** A subscription that waits to be begun (`fill`). */
  add(feed: IFeed): IEntry {
    const id = this._nextId++;
    const entry: IEntry = { feed, id, state: 'waiting', unacknowledged: 0, failures: 0 };
    this._entries.set(id, entry);
    return entry;
  }

  remove(entry: IEntry): void {
    this._entries.delete(entry.id);
    this.stop(entry);
    this.fill();
  }

  /** Forget all, saying nothing. */
  clear(): void {
    this._entries.clear();
  }

  /** Nobody will serve any of them. */
  fail(sentence: string): void {
    for (const entry of [...this._entries.values()]) {
      entry.feed.fail(sentence);
    }
  }

  /** Begin what waits, as far as the server lets a page have more. */
  fill(): void {
    if (!this._wire.open) {
      return;
    }
    const all = [...this._entries.values()];
    let active = all.filter(entry => entry.state === 'active').length;
    for (const entry of all) {
      const most = entry.feed.card ? MOST_CARDS : MOST;
      if (entry.state === 'waiting' && active < most) {
        entry.state = 'active';
        entry.unacknowledged = 0;
        active += 1;
        this._wire.send(entry.feed.request(entry.id));
      }
    }
  }

  private stop(entry: IEntry): void {
    if (entry.state === 'active') {
      this._wire.send({ op: 'unsubscribe', id: entry.id });
    }
  }

  /** Begin a subscription anew under a new number, so that nothing of the old is taken for it. */
  private again(entry: IEntry): void {
    this._entries.delete(entry.id);
    this.stop(entry);
    entry.id = this._nextId++;
    entry.state = 'waiting';
    this._entries.set(entry.id, entry);
    this.fill();
  }

  /** A new connection, on which nothing is subscribed to: begin everything where it stood. */
  resume(): void {
    for (const entry of this._entries.values()) {
      if (entry.state === 'active') {
        entry.state = 'waiting';
      }
    }
    this.fill();
  }

  /** Hand a message to its subscription; one for a subscription that has ended is dropped. */
  take(message: FeedMessage): void {
    const entry = this._entries.get(message.id);
    if (entry?.state !== 'active') {
      return;
    }
    try {
      const { bytes = 0, again = false } = entry.feed.take(message);
      if (message.type === 'end' || message.type === 'error') {
        this.over(entry, message);
        return;
      }
      entry.failures = 0;
      if (again) {
        this.again(entry);
      } else if (bytes > 0) {
        this.acknowledge(entry, bytes);
      }
    } catch (problem) {
      console.error('jupyter-submarine: a message cannot be read.', problem);
    }
  }

  /** The server has ended it: for good, or to be tried again where it could not help it. */
  private over(entry: IEntry, message: FeedMessage & { type: 'end' | 'error' }): void {
    entry.state = 'over';
    if (message.type === 'error' && !MISTAKES.has(message.code)) {
      entry.state = 'failed';
      setTimeout(
        () => {
          if (this._entries.get(entry.id) === entry && entry.state === 'failed') {
            this.again(entry);
          }
        },
        Math.min(RETRY * 2 ** entry.failures++, LONGEST_RETRY)
      );
    }
    this.fill();
  }

  private acknowledge(entry: IEntry, bytes: number): void {
    entry.unacknowledged += bytes;
    if (entry.unacknowledged >= ACK_BYTES) {
      this.flush(entry);
    } else {
      this._ackTimer ??= setTimeout(() => {
        this._ackTimer = null;
        for (const waiting of this._entries.values()) {
          this.flush(waiting);
        }
      }, ACK_DELAY);
    }
  }

  private flush(entry: IEntry): void {
    if (entry.unacknowledged > 0) {
      this._wire.send({ op: 'ack', id: entry.id, bytes: entry.unacknowledged });
      entry.unacknowledged = 0;
    }
  }

  private readonly _entries = new Map<number, IEntry>();
  private _nextId = 1;
  private _ackTimer: ReturnType<typeof setTimeout> | null = null;
}

/** What a listener holds; disposing of it twice is once. */
export class Handle implements ISubscription {
  constructor(private readonly end: () => void) {}

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    if (!this._disposed) {
      this._disposed = true;
      this.end();
    }
  }

  private _disposed = false;
}
