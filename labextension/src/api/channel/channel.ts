/**
 * The websocket channel of the page: one connection, shared by all subscriptions.
 *
 * `feeds.ts` and `log_feed.ts` hold the state of subscriptions, `subscriptions.ts` sends them,
 * `socket.ts` reconnects.
 */

import type { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import type { IChannel, ILogListener, IRunPicture, ISubscription } from '../../tokens';
import type { IFeed, Listeners, Update } from './feeds';
import { callSafely, JobFeed, JobsFeed, MetricsFeed, StartsFeed, WorkflowFeed } from './feeds';
import { LogFeed } from './log_feed';
import { ReconnectingSocket } from './socket';
import { SubscriptionHandle, Subscriptions } from './subscriptions';
import type { IEntry } from './subscriptions';
import type { IJobView, ISeries, IJobRow, IKernelStart } from '../types';
import { API, VERSION } from '../readiness';

interface IShared<T> extends IFeed {
  readonly listeners: Listeners<T>;
  readonly last: T | null;
}

export class Channel implements IChannel {
  /**
   * @param absenceReason - Called when the connection fails. A non-empty result stops further
   * attempts.
   */
  constructor(
    settings: ServerConnection.ISettings,
    private readonly trans: TranslationBundle,
    private readonly absenceReason: () => Promise<string>
  ) {
    this._socket = new ReconnectingSocket(settings, {
      opened: () => {
        this._subscriptions.resume();
      },
      message: message => {
        if (message.type === 'hello') {
          this.hello(message.api, message.version);
        } else {
          this._subscriptions.handle(message);
        }
      },
      broken: wasOpen => {
        this.broken(wasOpen);
      },
      closed: () => {
        this.setConnected(false);
      }
    });
    this._subscriptions = new Subscriptions(this._socket);
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
      update => {
        listener(update.rows, update.total, update.problem);
      }
    );
  }

  job(
    job: string,
    listener: (view: IJobView) => void,
    onError: (message: string) => void
  ): ISubscription {
    return this.share(`job ${job}`, () => new JobFeed(job), valueOrError(listener, onError));
  }

  metrics(
    job: string,
    points: number,
    listener: (series: readonly ISeries[]) => void
  ): ISubscription {
    const make = () => new MetricsFeed(job, points);
    return this.share(`metrics ${points} ${job}`, make, listener);
  }

  workflow(
    run: string,
    url: string,
    listener: (picture: IRunPicture) => void,
    onError: (message: string) => void
  ): ISubscription {
    const key = `workflow ${JSON.stringify([run, url])}`;
    return this.share(key, () => new WorkflowFeed(run, url), valueOrError(listener, onError));
  }

  starts(listener: (starts: readonly IKernelStart[]) => void): ISubscription {
    const nothing = (): void => undefined;
    return this.share('starts', () => new StartsFeed(), valueOrError(listener, nothing));
  }

  log(
    job: string,
    options: { tasks: readonly string[]; at?: Record<string, number>; tail?: number },
    listener: ILogListener
  ): ISubscription {
    const entry = this.add(new LogFeed(job, options, listener));
    return new SubscriptionHandle(() => {
      this.remove(entry);
    });
  }

  /** Close the channel. */
  dispose(): void {
    this._subscriptions.clear();
    this._shared.clear();
    this._socket.close();
    Signal.clearData(this);
  }

  /** Add a listener to the subscription of `key`; create the subscription if it does not exist. */
  private share<T>(
    key: string,
    make: () => IShared<T>,
    listener: (update: T) => void
  ): ISubscription {
    // A key always has the same type of feed.
    const found = this._shared.get(key) as { entry: IEntry; feed: IShared<T> } | undefined;
    const feed = found?.feed ?? make();
    // The same function can be registered twice.
    const own = (update: T) => {
      listener(update);
    };
    feed.listeners.all.add(own);
    const { last } = feed;
    if (found && last !== null) {
      callSafely(() => {
        own(last);
      });
    }
    const entry = found?.entry ?? this.add(feed);
    this._shared.set(key, { entry, feed });
    return new SubscriptionHandle(() => {
      feed.listeners.all.delete(own);
      if (feed.listeners.all.size === 0) {
        this._shared.delete(key);
        this.remove(entry);
      }
    });
  }

  private add(feed: IFeed): IEntry {
    const entry = this._subscriptions.add(feed);
    if (this._refusal) {
      // Report the error asynchronously, like every other response.
      void Promise.resolve(this._refusal).then(message => {
        feed.fail(message);
      });
    } else {
      this._socket.acquire();
      this._subscriptions.startWaiting();
    }
    return entry;
  }

  private remove(entry: IEntry): void {
    this._subscriptions.remove(entry);
    if (this._subscriptions.size === 0) {
      this._socket.release();
    }
  }

  private hello(api: number, version: string): void {
    if (api === API) {
      this.setConnected(true);
      return;
    }
    this.refuse(
      this.trans.__(
        'The page uses Submarine %1 and the server %2, which are not compatible. Reload the page.',
        VERSION,
        version
      )
    );
  }

  private broken(wasOpen: boolean): void {
    this.setConnected(false);
    if (!wasOpen && !this._asking) {
      this._asking = this.absenceReason()
        .then(message => {
          if (message && !this._connected) {
            this.refuse(message);
          }
        })
        .finally(() => {
          this._asking = null;
        });
    }
  }

  /** Stop connecting and report the reason to all current and future subscriptions. */
  private refuse(message: string): void {
    this._refusal = message;
    this._socket.close();
    this.setConnected(false);
    this._subscriptions.fail(message);
  }

  private setConnected(connected: boolean): void {
    if (connected !== this._connected) {
      this._connected = connected;
      this.connectedChanged.emit(connected);
    }
  }

  private readonly _socket: ReconnectingSocket;
  private readonly _subscriptions: Subscriptions;
  private readonly _shared = new Map<string, { entry: IEntry; feed: unknown }>();
  private _connected = false;
  private _refusal = '';
  private _asking: Promise<void> | null = null;
}

/** A feed listener that calls `listener` for values and `onError` for errors. */
function valueOrError<T>(
  listener: (value: T) => void,
  onError: (message: string) => void
): (update: Update<T>) => void {
  return update => {
    if ('value' in update) {
      listener(update.value);
    } else {
      onError(update.error);
    }
  };
}
