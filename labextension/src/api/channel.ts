/**
 * The page's one channel: who listens to what, through one connection that comes back.
 *
 * What a subscription remembers is its feed's (`job_feeds.ts`, `log_feed.ts`); connecting is
 * `socket.ts`'s.
 */

import type { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import type { IChannel, ILogListener, ISubscription } from '../tokens';
import type { IFeed, Listeners } from './feed';
import { safely } from './feed';
import { JobFeed, JobsFeed, MetricsFeed } from './job_feeds';
import { LogFeed } from './log_feed';
import { ReconnectingSocket } from './socket';
import type { IJobRow, IJobView, ISeries, ServerMessage } from './types';
import { API, VERSION } from './version';

/** Acknowledge at the latest after so many bytes, or milliseconds. */
const ACK_BYTES = 128 * 1024;
const ACK_DELAY = 50;
/** The server lets a page have 64; cards leave some to a log that is opened after them. */
const MOST = 64;
const MOST_CARDS = 52;
/** Pause before a subscription that the server could not serve is begun again. */
const RETRY = 15_000;
/** What no second try makes right. */
const MISTAKES: ReadonlySet<string> = new Set(['usage', 'not_found', 'forbidden']);

interface IEntry {
  readonly feed: IFeed;
  id: number;
  /** `over`: the server has said that nothing more will come. */
  state: 'waiting' | 'active' | 'failed' | 'over';
  unacknowledged: number;
}

interface IShared<T> extends IFeed {
  readonly listeners: Listeners<T>;
  readonly last: T | null;
}

export class Channel implements IChannel {
  /**
   * @param absent - Asked when no connection can be had: a sentence if there is no use in trying.
   */
  constructor(
    settings: ServerConnection.ISettings,
    private readonly trans: TranslationBundle,
    private readonly absent: () => Promise<string>
  ) {
    this._socket = new ReconnectingSocket(settings, {
      opened: () => {
        this.opened();
      },
      message: message => {
        this.message(message);
      },
      broken: ever => {
        this.broken(ever);
      },
      closed: () => {
        this.setConnected(false);
      }
    });
  }

  get connected(): boolean {
    return this._connected;
  }

  readonly connectedChanged = new Signal<this, boolean>(this);

  jobs(
    listener: (rows: readonly IJobRow[], total: number, problem: string) => void
  ): ISubscription {
    return this.share(
      'jobs',
      () => new JobsFeed(),
      news => {
        listener(news.rows, news.total, news.problem);
      }
    );
  }

  job(
    job: string,
    listener: (view: IJobView) => void,
    onError: (message: string) => void
  ): ISubscription {
    return this.share(
      `job ${job}`,
      () => new JobFeed(job),
      news => {
        if ('view' in news) {
          listener(news.view);
        } else {
          onError(news.error);
        }
      }
    );
  }

  metrics(
    job: string,
    points: number,
    listener: (series: readonly ISeries[]) => void
  ): ISubscription {
    const make = () => new MetricsFeed(job, points);
    return this.share(`metrics ${points} ${job}`, make, listener);
  }

  log(
    job: string,
    options: { tasks: readonly string[]; at?: Record<string, number>; tail?: number },
    listener: ILogListener
  ): ISubscription {
    const entry = this.add(new LogFeed(job, options, listener));
    return new Subscription(() => {
      this.remove(entry);
    });
  }

  /** End everything; only for a page (or a test) that goes away. */
  dispose(): void {
    this._entries.clear();
    this._shared.clear();
    this._socket.close();
    Signal.clearData(this);
  }

  /** One subscription for all listeners of the same thing. */
  private share<T>(
    key: string,
    make: () => IShared<T>,
    listener: (news: T) => void
  ): ISubscription {
    // Of one key there is one kind of feed, so this is the type that it was made with.
    const found = this._shared.get(key) as { entry: IEntry; feed: IShared<T> } | undefined;
    const feed = found?.feed ?? make();
    // The same function may listen twice.
    const own = (news: T) => {
      listener(news);
    };
    feed.listeners.all.add(own);
    const { last } = feed;
    if (found && last !== null) {
      safely(() => {
        own(last);
      });
    }
    const entry = found?.entry ?? this.add(feed);
    this._shared.set(key, { entry, feed });
    return new Subscription(() => {
      feed.listeners.all.delete(own);
      if (feed.listeners.all.size === 0) {
        this._shared.delete(key);
        this.remove(entry);
      }
    });
  }

  private add(feed: IFeed): IEntry {
    const entry: IEntry = { feed, id: this._nextId++, state: 'waiting', unacknowledged: 0 };
    this._entries.set(entry.id, entry);
    if (this._refusal) {
      // Later, as every answer comes later than the call.
      void Promise.resolve(this._refusal).then(sentence => {
        feed.fail(sentence);
      });
    } else {
      this._socket.want();
      this.fill();
    }
    return entry;
  }

  private remove(entry: IEntry): void {
    this._entries.delete(entry.id);
    this.stop(entry);
    if (this._entries.size === 0) {
      this._socket.release();
    } else {
      this.fill();
    }
  }

  /** Begin what waits, as far as the server lets a page have more. */
  private fill(): void {
    if (!this._socket.open) {
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
        this._socket.send(entry.feed.request(entry.id));
      }
    }
  }

  private stop(entry: IEntry): void {
    if (entry.state === 'active') {
      this._socket.send({ op: 'unsubscribe', id: entry.id });
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

  private opened(): void {
    for (const entry of this._entries.values()) {
      if (entry.state === 'active') {
        entry.state = 'waiting';
      }
    }
    this.fill();
  }

  private message(message: ServerMessage): void {
    if (message.type === 'hello') {
      this.hello(message.api, message.version);
      return;
    }
    const entry = this._entries.get(message.id);
    if (entry?.state !== 'active') {
      return;
    }
    try {
      const { bytes = 0, again = false } = entry.feed.take(message);
      if (message.type === 'end' || message.type === 'error') {
        this.over(entry, message);
      } else if (again) {
        this.again(entry);
      } else if (bytes > 0) {
        this.acknowledge(entry, bytes);
      }
    } catch (problem) {
      console.error('jupyter-submarine: a message cannot be read.', problem);
    }
  }

  /** The server has ended it: for good, or to be tried again where it could not help it. */
  private over(entry: IEntry, message: ServerMessage & { type: 'end' | 'error' }): void {
    entry.state = 'over';
    if (message.type === 'error' && !MISTAKES.has(message.code)) {
      entry.state = 'failed';
      setTimeout(() => {
        if (this._entries.get(entry.id) === entry && entry.state === 'failed') {
          this.again(entry);
        }
      }, RETRY);
    }
    this.fill();
  }

  private hello(api: number, version: string): void {
    if (api === API) {
      this.setConnected(true);
      return;
    }
    this.refuse(
      this.trans.__(
        'This page has Submarine %1 and the server %2, which do not fit: reload the page.',
        VERSION,
        version
      )
    );
  }

  private broken(ever: boolean): void {
    this.setConnected(false);
    if (!ever && !this._asking) {
      this._asking = this.absent()
        .then(sentence => {
          if (sentence && !this._connected) {
            this.refuse(sentence);
          }
        })
        .finally(() => {
          this._asking = null;
        });
    }
  }

  /** There is no use in trying: everybody is told, now and later. */
  private refuse(sentence: string): void {
    this._refusal = sentence;
    this._socket.close();
    this.setConnected(false);
    for (const entry of [...this._entries.values()]) {
      entry.feed.fail(sentence);
    }
  }

  private setConnected(connected: boolean): void {
    if (connected !== this._connected) {
      this._connected = connected;
      this.connectedChanged.emit(connected);
    }
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
      this._socket.send({ op: 'ack', id: entry.id, bytes: entry.unacknowledged });
      entry.unacknowledged = 0;
    }
  }

  private readonly _socket: ReconnectingSocket;
  private readonly _entries = new Map<number, IEntry>();
  private readonly _shared = new Map<string, { entry: IEntry; feed: unknown }>();
  private _nextId = 1;
  private _connected = false;
  private _refusal = '';
  private _asking: Promise<void> | null = null;
  private _ackTimer: ReturnType<typeof setTimeout> | null = null;
}

class Subscription implements ISubscription {
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
