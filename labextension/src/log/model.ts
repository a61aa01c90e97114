/**
 * The model of a log view: the list of logs, the window of lines, live data and reads in both
 * directions. Each byte from the channel is shown once, reported as skipped, or left for `later` if
 * it is outside of the window. No DOM.
 */

import { Signal, type ISignal } from '@lumino/signaling';
import type { IDisposable } from '@lumino/disposable';
import { errorMessage, isAbort } from '../api/rest/errors';
import type { ISubmarine } from '../tokens';
import type { ILogInfo } from '../api/types';
import { LiveLines } from './live';
import {
  PAGE,
  pageAfter,
  pageAt,
  pageBefore,
  readPage,
  startOffset,
  type Anchor,
  type ILogPage,
  type IReadRequest
} from './lines/reading';
import type { IStatus } from './view/status_text';
import { Sources, type IFilter, type LogSource } from './lines/sources';
import { LogWindow } from './lines/window';

export interface ILogModelOptions {
  readonly submarine: ISubmarine;
  readonly job: string;
  readonly filter: IFilter;
  /** Bytes per read. */
  readonly page?: number;
  /** Runs a function soon; default: with the next frame. */
  readonly schedule?: (run: () => void) => void;
}

export class LogModel implements IDisposable {
  constructor(options: ILogModelOptions) {
    this.job = options.job;
    this._submarine = options.submarine;
    this._sources = new Sources(options.filter);
    this._page = options.page ?? PAGE;
    this._live = new LiveLines({
      submarine: options.submarine,
      job: options.job,
      sources: this._sources,
      window: this.window,
      follows: () => this.follow,
      onStatus: change => {
        this._setStatus(change);
      },
      onNewLog: () => {
        this._logsChanged.emit(undefined);
      },
      onLines: () => {
        this._changed.emit(undefined);
      },
      schedule: options.schedule
    });
  }

  readonly job: string;
  readonly window = new LogWindow();
  /** Whether new lines remove the oldest lines; otherwise they are read later. */
  follow = true;

  /** All known logs of the job. */
  get logs(): readonly ILogInfo[] {
    return this._sources.logs;
  }
  get sources(): readonly LogSource[] {
    return this._sources.shown;
  }
  get filter(): IFilter {
    return this._sources.filter;
  }
  get status(): IStatus {
    return this._status;
  }
  get isDisposed(): boolean {
    return this._disposed;
  }
  /** Lines were added, removed or changed. */
  get changed(): ISignal<this, undefined> {
    return this._changed;
  }
  /** The window was replaced. */
  get moved(): ISignal<this, Anchor> {
    return this._moved;
  }
  get statusChanged(): ISignal<this, IStatus> {
    return this._statusChanged;
  }
  /** There are new logs. */
  get logsChanged(): ISignal<this, undefined> {
    return this._logsChanged;
  }

  get canEarlier(): boolean {
    return this._sources.canEarlier;
  }
  get canLater(): boolean {
    return this._sources.canLater;
  }
  get total(): number {
    return this._sources.total;
  }

  /** Load the logs and subscribe; also used to retry. */
  async open(anchor: Anchor = this.follow ? 'end' : 'start'): Promise<void> {
    this._live.unsubscribe();
    this._setStatus({ phase: 'loading', message: '', ended: false, behind: null });
    const listed = await this._currentRead.run(async () => {
      const logs = await this._submarine.rest.logs(this.job);
      return () => {
        this._sources.list(logs);
        this.window.clear();
        this._live.subscribe();
        this._logsChanged.emit(undefined);
      };
    });
    if (listed) {
      await this.goTo(anchor);
    }
  }

  /** Select other logs of the job. */
  async setFilter(filter: IFilter): Promise<void> {
    this._sources.setFilter(filter);
    await this.open();
  }

  /** Replace the window by the lines around a position; live data waits meanwhile. */
  async goTo(anchor: Anchor): Promise<void> {
    await this._currentRead.run(async signal => {
      const page = await this._read(pageAt(this.sources, anchor, this._page), signal);
      return () => {
        this._load(page, anchor);
        this._setStatus({ phase: 'ready', message: '' });
        this._moved.emit(anchor);
      };
    });
  }

  /** Go to a fraction of the whole, 0 to 1. */
  async goToPart(part: number): Promise<void> {
    const [first, ...others] = this.sources;
    if (first !== undefined) {
      const source = others.reduce((best, one) => (one.length > best.length ? one : best), first);
      await this.goTo({ source, offset: Math.floor(part * source.length) });
    }
  }

  /** Read the data before the window. */
  async earlier(): Promise<void> {
    await this._more(pageBefore(this.sources, this._page), page => {
      this.window.prepend(page);
      this.window.trimTail();
    });
  }

  /** Read the data after the window. */
  async later(): Promise<void> {
    await this._more(pageAfter(this.sources, this._page), page => {
      const before = this.window.rows.length;
      this.window.appendPage(page);
      for (const { source, data, length } of page.logs) {
        if (data.length === 0 && length <= source.hi) {
          source.length = source.hi;
        }
      }
      this.window.detached = this.sources.some(source => source.hi < source.length);
      this.window.trimTail(before + this.window.page);
      this.window.trimHead();
    });
  }

  /** Position of a line: an offset in each selected log. */
  offsets(number: number): Map<LogSource, number> {
    return this._sources.offsets(this.window.rows, number - this.window.base);
  }

  /** Position of a line in all selected logs, in bytes. */
  position(number: number): number {
    return [...this.offsets(number).values()].reduce((sum, offset) => sum + offset, 0);
  }

  dispose(): void {
    this._disposed = true;
    this._currentRead.end();
    this._live.unsubscribe();
    Signal.clearData(this);
  }

  private _load(page: ILogPage, anchor: Anchor): void {
    this.window.clear();
    for (const source of this.sources) {
      source.moveTo(startOffset(source, anchor));
    }
    this.window.load(page);
    for (const source of this.sources) {
      source.length = Math.max(source.length, source.hi);
    }
    if (anchor === 'end') {
      this.window.trimHead();
    } else {
      this.window.detached = this.sources.some(source => source.hi < source.length);
      this.window.trimTail();
    }
  }

  private async _more(
    request: IReadRequest | null,
    apply: (page: ILogPage) => void
  ): Promise<void> {
    if (this._currentRead.busy || request === null) {
      return;
    }
    await this._currentRead.run(async signal => {
      const page = await this._read(request, signal);
      return () => {
        apply(page);
        this._changed.emit(undefined);
      };
    });
  }

  private async _read(request: IReadRequest, signal: AbortSignal): Promise<ILogPage> {
    const page = await readPage(this._submarine.rest, this.job, request, signal);
    for (const { source, length } of page.logs) {
      source.length = Math.max(source.length, length);
    }
    return page;
  }

  private _setStatus(change: Partial<IStatus>): void {
    this._status = { ...this._status, ...change };
    if (!this._disposed) {
      this._statusChanged.emit(this._status);
    }
  }

  private readonly _submarine: ISubmarine;
  private readonly _page: number;
  private readonly _live: LiveLines;
  private readonly _sources: Sources;
  /** Live data waits for the end of a read. */
  private readonly _currentRead = new LatestRead(
    busy => {
      this._live.paused = busy;
    },
    error => {
      this._setStatus({ phase: 'error', message: errorMessage(error) });
    }
  );
  private _disposed = false;
  private _status: IStatus = { phase: 'loading', message: '', ended: false, behind: null };
  private readonly _changed = new Signal<this, undefined>(this);
  private readonly _moved = new Signal<this, Anchor>(this);
  private readonly _statusChanged = new Signal<this, IStatus>(this);
  private readonly _logsChanged = new Signal<this, undefined>(this);
}

export class LatestRead {
  /**
   * @param onBusy - Called when a read starts and when none is in progress any more.
   * @param onFailure - Called with the error of the current read.
   */
  constructor(
    private readonly _onBusy: (busy: boolean) => void,
    private readonly _onFailure: (error: unknown) => void
  ) {}

  get busy(): boolean {
    return this._controller !== null;
  }

  /**
   * Read, then apply the result unless a newer read has started; returns whether it was applied.
   */
  async run(read: (signal: AbortSignal) => Promise<() => void>): Promise<boolean> {
    this._controller?.abort();
    if (this._ended) {
      return false;
    }
    const controller = (this._controller = new AbortController());
    this._onBusy(true);
    try {
      const done = await read(controller.signal);
      if (this._controller === controller) {
        done();
        return true;
      }
    } catch (error) {
      if (this._controller === controller && !isAbort(error)) {
        this._onFailure(error);
      }
    } finally {
      if (this._controller === controller) {
        this._controller = null;
        this._onBusy(false);
      }
    }
    return false;
  }

  /** Abort the current read and reject later ones. */
  end(): void {
    this._ended = true;
    this._controller?.abort();
    this._controller = null;
  }

  private _controller: AbortController | null = null;
  private _ended = false;
}
