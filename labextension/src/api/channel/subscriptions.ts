/** Subscriptions of the page on one connection: start, acknowledge, restart. */

import type { ISubscription } from '../../tokens';
import type { FeedMessage, IFeed } from './feeds';
import type { ClientMessage } from './messages';

/** Acknowledge after this number of bytes or milliseconds. */
const ACK_BYTES = 128 * 1024;
const ACK_DELAY = 50;
/** Limit of the server for a page. Cards leave some subscriptions for logs. */
const MAX_SUBSCRIPTIONS = 64;
const MAX_CARD_SUBSCRIPTIONS = 52;
/** Pause before a failed subscription is restarted, in milliseconds. */
const RETRY = 15_000;
const LONGEST_RETRY = 240_000;
/**
 * Errors for which a retry cannot help. `not_found` is not one of them: the job may just have been
 * submitted.
 */
const PERMANENT_ERRORS: ReadonlySet<string> = new Set(['usage', 'forbidden']);

/** One subscription of the page. */
export interface IEntry {
  readonly feed: IFeed;
  id: number;
  /** `finished`: the server sends no more messages. */
  state: 'waiting' | 'active' | 'failed' | 'finished';
  unacknowledged: number;
  /** Consecutive failures. */
  failures: number;
}

/** The connection. */
interface IConnection {
  readonly open: boolean;
  send(message: ClientMessage): void;
}

export class Subscriptions {
  constructor(private readonly _connection: IConnection) {}

  get size(): number {
    return this._entries.size;
  }

  /** Add a subscription; `startWaiting` starts it. */
  add(feed: IFeed): IEntry {
    const id = this._nextId++;
    const entry: IEntry = { feed, id, state: 'waiting', unacknowledged: 0, failures: 0 };
    this._entries.set(id, entry);
    return entry;
  }

  remove(entry: IEntry): void {
    this._entries.delete(entry.id);
    this.stop(entry);
    this.startWaiting();
  }

  /** Remove all subscriptions without notifying the server. */
  clear(): void {
    this._entries.clear();
  }

  /** Report an error to all feeds. */
  fail(message: string): void {
    for (const entry of [...this._entries.values()]) {
      entry.feed.fail(message);
    }
  }

  /** Start waiting subscriptions up to the limit of the server. */
  startWaiting(): void {
    if (!this._connection.open) {
      return;
    }
    const all = [...this._entries.values()];
    let active = all.filter(entry => entry.state === 'active').length;
    for (const entry of all) {
      const limit = entry.feed.isCard ? MAX_CARD_SUBSCRIPTIONS : MAX_SUBSCRIPTIONS;
      if (entry.state === 'waiting' && active < limit) {
        entry.state = 'active';
        entry.unacknowledged = 0;
        active += 1;
        this._connection.send(entry.feed.request(entry.id));
      }
    }
  }

  private stop(entry: IEntry): void {
    if (entry.state === 'active') {
      this._connection.send({ op: 'unsubscribe', id: entry.id });
    }
  }

  /** Restart a subscription with a new id, so that messages of the old one are ignored. */
  private restart(entry: IEntry): void {
    this._entries.delete(entry.id);
    this.stop(entry);
    entry.id = this._nextId++;
    entry.state = 'waiting';
    this._entries.set(entry.id, entry);
    this.startWaiting();
  }

  /** A new connection was opened: start all subscriptions at their positions. */
  resume(): void {
    for (const entry of this._entries.values()) {
      if (entry.state === 'active') {
        entry.state = 'waiting';
      }
    }
    this.startWaiting();
  }

  /** Pass a message to its subscription; drop messages of ended subscriptions. */
  handle(message: FeedMessage): void {
    const entry = this._entries.get(message.id);
    if (entry?.state !== 'active') {
      return;
    }
    try {
      const { bytes = 0, restart = false } = entry.feed.handle(message);
      if (message.type === 'end' || message.type === 'error') {
        this.finish(entry, message);
        return;
      }
      entry.failures = 0;
      if (restart) {
        this.restart(entry);
      } else if (bytes > 0) {
        this.acknowledge(entry, bytes);
      }
    } catch (problem) {
      console.error('jupyter-submarine: a message cannot be read.', problem);
    }
  }

  /** The server ended the subscription. Retry later unless the end is final. */
  private finish(entry: IEntry, message: FeedMessage & { type: 'end' | 'error' }): void {
    entry.state = 'finished';
    if (message.type === 'error' && !PERMANENT_ERRORS.has(message.code)) {
      entry.state = 'failed';
      setTimeout(
        () => {
          if (this._entries.get(entry.id) === entry && entry.state === 'failed') {
            this.restart(entry);
          }
        },
        Math.min(RETRY * 2 ** entry.failures++, LONGEST_RETRY)
      );
    }
    this.startWaiting();
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
      this._connection.send({ op: 'ack', id: entry.id, bytes: entry.unacknowledged });
      entry.unacknowledged = 0;
    }
  }

  private readonly _entries = new Map<number, IEntry>();
  private _nextId = 1;
  private _ackTimer: ReturnType<typeof setTimeout> | null = null;
}

/** The handle of a listener; disposing it twice has no effect. */
export class SubscriptionHandle implements ISubscription {
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
