/**
 * Add the live data of a job's logs to the window, each byte once. Data outside of the displayed
 * part is not added. Live data waits while a read is in progress.
 */

import type { ISubmarine, ISubscription } from '../tokens';
import { LiveQueue, type IChunk } from './lines/live_queue';
import type { IStatus } from './view/status_text';
import type { LogSource } from './lines/source';
import type { Sources } from './lines/sources';
import type { LogWindow } from './lines/window';

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
          this._queue.push({ where, offset, data, time: Date.now() });
        },
        skip: (where, _from, to) => {
          this._queue.push({ where, offset: to, data: none, time: Date.now() });
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
    const { sources, onNewLog, onLines } = this._options;
    for (const { where, offset, data, time } of chunks) {
      const { source, isNew } = sources.add(where, offset, offset + data.length);
      if (isNew) {
        onNewLog();
      }
      if (source !== undefined) {
        this._handleChunk(source, offset, data, time);
      }
    }
    onLines();
  }

  private _handleChunk(source: LogSource, offset: number, data: Uint8Array, time: number): void {
    const { window, follows } = this._options;
    const end = offset + data.length;
    source.length = Math.max(source.length, end);
    source.detached ||= !follows() && window.full;
    if (source.detached || end <= source.hi) {
      return;
    }
    if (data.length === 0) {
      window.skip(source, end);
    } else {
      const fresh = data.subarray(Math.max(0, source.hi - offset));
      const at = end - fresh.length;
      window.append([{ source, data: fresh, offset: at }], at >= source.firstLength ? time : null);
    }
    if (follows()) {
      window.trimHead();
    }
  }

  private readonly _queue: LiveQueue;
  private _subscription: ISubscription | null = null;
}
