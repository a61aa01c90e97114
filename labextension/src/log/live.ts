/**
 * The live data of a job's logs: received by a subscription, queued until the next frame, and added
 * to the window, each byte once. While a read is in progress, it waits in the queue. The queue is
 * bounded: when it is full, the oldest bytes are dropped and only their positions are kept.
 */

import type { ISubmarine, ISubscription } from '../tokens';
import { keyOf } from '../api/log_bytes';
import type { ILogPlace } from '../api/types';
import type { Sources } from './lines/sources';
import type { LogWindow } from './lines/window';
import type { IStatus } from './view/status_text';

interface IChunk {
  readonly where: ILogPlace;
  /** Offset of the first byte; earlier bytes were delivered before or are skipped. */
  readonly offset: number;
  readonly data: Uint8Array;
  /** Time of arrival in milliseconds since the epoch. */
  readonly time: number;
}

/** Maximum number of queued bytes. */
export const MAX_QUEUED = 4 * 1024 * 1024;

export class LiveQueue {
  /**
   * @param take - Receives the queued chunks in order.
   * @param schedule - Runs a function soon; default: with the next frame.
   */
  constructor(
    take: (chunks: readonly IChunk[]) => void,
    schedule: (run: () => void) => void = nextFrame
  ) {
    this._take = take;
    this._schedule = schedule;
  }

  /** While paused, chunks stay in the queue. */
  get paused(): boolean {
    return this._paused;
  }
  set paused(paused: boolean) {
    this._paused = paused;
    if (!paused && this._chunks.length > 0) {
      this._scheduleFlush();
    }
  }

  push(where: ILogPlace, offset: number, data: Uint8Array): void {
    this._chunks.push({ where, offset, data, time: Date.now() });
    this._bytes += data.length;
    while (this._bytes > MAX_QUEUED) {
      this._dropOldest();
    }
    this._scheduleFlush();
  }

  flush(): void {
    if (!this._paused && this._chunks.length > 0) {
      const chunks = this._chunks;
      this.clear();
      this._take(chunks);
    }
  }

  clear(): void {
    this._chunks = [];
    this._bytes = 0;
    this._dropped = 0;
  }

  private _scheduleFlush(): void {
    if (!this._scheduled && !this._paused) {
      this._scheduled = true;
      this._schedule(() => {
        this._scheduled = false;
        this.flush();
      });
    }
  }

  private _dropOldest(): void {
    const index = this._dropped++;
    const chunk = this._chunks[index];
    if (chunk !== undefined) {
      this._bytes -= chunk.data.length;
      const offset = chunk.offset + chunk.data.length;
      this._chunks[index] = { ...chunk, offset, data: new Uint8Array() };
    }
    if (this._dropped > 1000) {
      this._compact();
    }
  }

  /** Keep only the last position of each log among the dropped chunks. */
  private _compact(): void {
    const last = new Map<string, IChunk>();
    for (const chunk of this._chunks.slice(0, this._dropped)) {
      last.set(keyOf(chunk.where), chunk);
    }
    this._chunks = [...last.values(), ...this._chunks.slice(this._dropped)];
    this._dropped = last.size;
  }

  private _chunks: IChunk[] = [];
  private _bytes = 0;
  /** Number of leading chunks without bytes. */
  private _dropped = 0;
  private _paused = false;
  private _scheduled = false;
  private readonly _take: (chunks: readonly IChunk[]) => void;
  private readonly _schedule: (run: () => void) => void;
}

export interface ILiveOptions {
  readonly submarine: ISubmarine;
  readonly job: string;
  readonly sources: Sources;
  readonly window: LogWindow;
  /** Whether new lines remove the oldest lines; otherwise they are read later. */
  readonly follows: () => boolean;
  readonly onStatus: (change: Partial<IStatus>) => void;
  readonly onNewLog: () => void;
  readonly onLines: () => void;
  /** Runs a function soon; default: with the next frame. */
  readonly schedule: ((run: () => void) => void) | undefined;
}

export class LiveLines {
  constructor(private readonly _options: ILiveOptions) {
    this._queue = new LiveQueue(chunks => {
      this._handle(chunks);
    }, _options.schedule);
  }

  set paused(paused: boolean) {
    this._queue.paused = paused;
  }

  /** Unsubscribe and clear the queue. */
  unsubscribe(): void {
    this._subscription?.dispose();
    this._subscription = null;
    this._queue.clear();
  }

  /** Subscribe from the known lengths on. */
  subscribe(): void {
    const { submarine, job, sources, onStatus } = this._options;
    const { task } = sources.filter;
    const none = new Uint8Array();
    this._subscription = submarine.channel.log(
      job,
      { tasks: task === '' ? ['*'] : [task], at: sources.lengths },
      {
        chunk: (where, offset, data) => {
          this._queue.push(where, offset, data);
        },
        skip: (where, _from, to) => {
          this._queue.push(where, to, none);
        },
        behind: behind => {
          onStatus({ behind });
        },
        end: () => {
          this._queue.flush();
          onStatus({ ended: true, behind: null });
        },
        error: message => {
          onStatus({ message });
        }
      }
    );
  }

  private _handle(chunks: readonly IChunk[]): void {
    const { sources, window, follows, onNewLog, onLines } = this._options;
    for (const { where, offset, data, time } of chunks) {
      const end = offset + data.length;
      const { source, isNew } = sources.add(where, offset, end);
      if (isNew) {
        onNewLog();
      }
      if (source !== undefined) {
        source.length = Math.max(source.length, end);
        window.detached ||= !follows() && window.full;
        if (!window.detached) {
          window.append(source, offset, data, time);
          if (follows()) {
            window.trimHead();
          }
        }
      }
    }
    onLines();
  }

  private readonly _queue: LiveQueue;
  private _subscription: ISubscription | null = null;
}

/** Run with the next frame, or by a timer if the page is hidden. */
function nextFrame(run: () => void): void {
  if (document.hidden) {
    setTimeout(run, 250);
    return;
  }
  let done = false;
  const once = () => {
    if (!done) {
      done = true;
      clearTimeout(timer);
      run();
    }
  };
  const timer = setTimeout(once, 250);
  requestAnimationFrame(once);
}
