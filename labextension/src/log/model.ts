/**
 * A job's log as a reader goes through it: which logs there are, the window, the live stream and
 * reading by offset in both directions. Every byte that the channel brings is shown once, named as
 * skipped, or left for `later` because the reader looks elsewhere. No DOM.
 */

import { Signal, type ISignal } from '@lumino/signaling';
import type { IDisposable } from '@lumino/disposable';
import { isAbort, sentence } from '../api/errors';
import type { ISubmarine, ISubscription } from '../tokens';
import type { ILogInfo } from '../api/log_types';
import { LiveQueue, type IChunk } from './live';
import { PAGE, placesAfter, placesAround, placesBefore, readAll, standingAt } from './reading';
import type { Anchor, IPlace, IRead } from './reading';
import { chosen, keyOf, LogSource, type IFilter } from './source';
import { LogWindow } from './window';

export type { Anchor };

export interface IStatus {
  readonly phase: 'loading' | 'ready' | 'error';
  /** What went wrong; may also come while everything else works. */
  readonly message: string;
  /** Nothing more will come. */
  readonly ended: boolean;
  /** Seconds that the logs are behind, where the live path is down. */
  readonly behind: number | null;
}

export interface ILogModelOptions {
  readonly submarine: ISubmarine;
  readonly job: string;
  readonly filter: IFilter;
  /** Bytes of one reading. */
  readonly page?: number;
  /** Runs a function soon: with the next frame in a browser. */
  readonly schedule?: (run: () => void) => void;
}

export class LogModel implements IDisposable {
  constructor(options: ILogModelOptions) {
    this.job = options.job;
    this._submarine = options.submarine;
    this._filter = options.filter;
    this._page = options.page ?? PAGE;
    this._live = new LiveQueue(chunks => {
      this._takeLive(chunks);
    }, options.schedule);
  }

  readonly job: string;
  readonly window = new LogWindow();
  /** Whether new lines push old ones out at the beginning, or wait below. */
  follow = true;

  /** All logs of the job that were heard of. */
  get logs(): readonly ILogInfo[] {
    return [...this._logs.values()];
  }
  get sources(): readonly LogSource[] {
    return [...this._sources.values()];
  }
  get filter(): IFilter {
    return this._filter;
  }
  get status(): IStatus {
    return this._status;
  }
  get isDisposed(): boolean {
    return this._disposed;
  }
  /** Lines came, went or changed. */
  get changed(): ISignal<this, undefined> {
    return this._changed;
  }
  /** The window holds another stretch now. */
  get moved(): ISignal<this, Anchor> {
    return this._moved;
  }
  get statusChanged(): ISignal<this, IStatus> {
    return this._statusChanged;
  }
  /** There are logs that were not there before. */
  get logsChanged(): ISignal<this, undefined> {
    return this._logsChanged;
  }

  get canEarlier(): boolean {
    return this.sources.some(source => source.lo > 0);
  }
  get canLater(): boolean {
    return this.sources.some(source => source.hi < source.length);
  }
  get total(): number {
    return this.sources.reduce((sum, source) => sum + source.length, 0);
  }

  /** Read what there is and listen; also the way to try again. */
  async open(anchor: Anchor = this.follow ? 'end' : 'start'): Promise<void> {
    this._subscription?.dispose();
    this._live.clear();
    this._setStatus({ phase: 'loading', message: '', ended: false, behind: null });
    await this._guarded(async () => {
      const logs = await this._submarine.rest.logs(this.job);
      return () => {
        for (const log of logs) {
          this._logs.set(keyOf(log), { ...log });
        }
        this._choose();
        this._listen();
        this._logsChanged.emit(undefined);
      };
    });
    if (this._status.phase === 'loading') {
      await this.goTo(anchor);
    }
  }

  /** Show other logs of the job. */
  async setFilter(filter: IFilter): Promise<void> {
    this._filter = filter;
    await this.open();
  }

  /** Read the window anew around a place, holding what comes live meanwhile. */
  async goTo(anchor: Anchor): Promise<void> {
    await this._guarded(async signal => {
      const parts = await this._read(placesAround(this.sources, anchor, this._page), signal);
      return () => {
        this._load(parts, anchor);
        this._setStatus({ ...this._status, phase: 'ready', message: '' });
        this._moved.emit(anchor);
      };
    });
  }

  /** Go to a part of the whole, 0 to 1. */
  async goToPart(part: number): Promise<void> {
    const [first, ...others] = this.sources;
    if (first !== undefined) {
      const source = others.reduce((best, one) => (one.length > best.length ? one : best), first);
      await this.goTo({ source, offset: Math.floor(part * source.length) });
    }
  }

  /** Read what lies before the window. */
  async earlier(): Promise<void> {
    await this._more(placesBefore(this.sources, this._page), parts => {
      const fit = ({ source, offset, data }: IRead) => offset + data.length === source.lo;
      this.window.prepend(parts.filter(fit));
      this.window.trimTail();
    });
  }

  /** Read what lies after the window. */
  async later(): Promise<void> {
    await this._more(placesAfter(this.sources, this._page), parts => {
      const before = this.window.rows.length;
      const fit = parts.filter(({ source, offset }) => offset === source.hi);
      this.window.append(fit, null);
      for (const { source, data, length } of fit) {
        if (data.length === 0 && length <= source.hi) {
          source.length = source.hi;
        }
        source.detached = source.hi < source.length;
      }
      this.window.trimTail(before + this.window.page);
      this.window.trimHead();
    });
  }

  /** How far into all logs a line is, in bytes. */
  position(number: number): number {
    const { rows, base } = this.window;
    const next = new Map<LogSource, number>();
    for (let i = Math.max(0, number - base); i < rows.length; i++) {
      const row = rows[i];
      if (row !== undefined && !next.has(row.source)) {
        next.set(row.source, row.offset);
        if (next.size === this._sources.size) {
          break;
        }
      }
    }
    return this.sources.reduce((sum, source) => sum + (next.get(source) ?? source.hi), 0);
  }

  dispose(): void {
    if (!this._disposed) {
      this._disposed = true;
      this._reading?.abort();
      this._subscription?.dispose();
      this._live.clear();
      Signal.clearData(this);
    }
  }

  private _choose(): void {
    const old = this._sources;
    this._sources = new Map();
    for (const log of chosen(this.logs, this._filter)) {
      const length = Math.max(log.length, old.get(keyOf(log))?.length ?? 0);
      this._sources.set(keyOf(log), new LogSource(log, length, this._sources.size));
    }
    this.window.clear();
  }

  private _listen(): void {
    const at = Object.fromEntries([...this._logs].map(([key, log]) => [key, log.length]));
    const tasks = this._filter.task === '' ? ['*'] : [this._filter.task];
    const none = new Uint8Array();
    this._subscription = this._submarine.channel.log(
      this.job,
      { tasks, at },
      {
        chunk: (where, offset, data) => {
          this._live.push({ where, offset, data, time: Date.now() });
        },
        skip: (where, _from, to) => {
          this._live.push({ where, offset: to, data: none, time: Date.now() });
        },
        behind: behind => {
          this._setStatus({ ...this._status, behind });
        },
        end: () => {
          this._live.flush();
          this._setStatus({ ...this._status, ended: true, behind: null });
        },
        error: message => {
          this._setStatus({ ...this._status, message });
        }
      }
    );
  }

  private _load(parts: readonly IRead[], anchor: Anchor): void {
    this.window.clear();
    for (const source of this.sources) {
      source.moveTo(standingAt(source, anchor));
    }
    this.window.load(parts);
    for (const source of this.sources) {
      source.length = Math.max(source.length, source.hi);
      source.detached = anchor !== 'end' && source.hi < source.length;
    }
    if (anchor === 'end') {
      this.window.trimHead();
    } else {
      this.window.trimTail();
    }
  }

  private _takeLive(chunks: readonly IChunk[]): void {
    for (const { where, offset, data, time } of chunks) {
      const end = offset + data.length;
      const log = this._logs.get(keyOf(where));
      if (log === undefined) {
        this._addLog(
          { ...where, stream: where.stream === 'stderr' ? 'stderr' : 'stdout', length: end },
          offset
        );
      } else {
        log.length = Math.max(log.length, end);
      }
      const source = this._sources.get(keyOf(where));
      if (source !== undefined) {
        this._takeChunk(source, offset, data, time);
      }
    }
    this._changed.emit(undefined);
  }

  private _takeChunk(source: LogSource, offset: number, data: Uint8Array, time: number): void {
    const end = offset + data.length;
    source.length = Math.max(source.length, end);
    source.detached ||= !this.follow && this.window.full;
    if (source.detached || end <= source.hi) {
      return;
    }
    if (data.length === 0) {
      this.window.skip(source, end);
    } else {
      const fresh = data.subarray(Math.max(0, source.hi - offset));
      const at = end - fresh.length;
      this.window.append(
        [{ source, data: fresh, offset: at }],
        at >= source.firstLength ? time : null
      );
    }
    if (this.follow) {
      this.window.trimHead();
    }
  }

  /** A log that began after we opened: a task's next attempt, or a task that started late. */
  private _addLog(log: ILogInfo, offset: number): void {
    this._logs.set(keyOf(log), log);
    if (chosen(this.logs, this._filter).includes(log)) {
      const source = new LogSource(log, offset, this._sources.size);
      source.firstLength = 0;
      this._sources.set(source.key, source);
    }
    this._logsChanged.emit(undefined);
  }

  private async _more(places: IPlace[], take: (parts: readonly IRead[]) => void): Promise<void> {
    if (this._busy || places.length === 0) {
      return;
    }
    await this._guarded(async signal => {
      const parts = await this._read(places, signal);
      return () => {
        take(parts);
        this._changed.emit(undefined);
      };
    });
  }

  private async _read(places: readonly IPlace[], signal: AbortSignal): Promise<IRead[]> {
    const parts = await readAll(this._submarine.rest, this.job, places, signal);
    for (const { source, length } of parts) {
      source.length = Math.max(source.length, length);
    }
    return parts;
  }

  /** Do one reading at a time; a newer one takes its place. Live lines wait for its end. */
  private async _guarded(read: (signal: AbortSignal) => Promise<() => void>): Promise<void> {
    this._reading?.abort();
    const reading = (this._reading = new AbortController());
    this._live.paused = true;
    try {
      const done = await read(reading.signal);
      if (this._reading === reading && !this._disposed) {
        done();
      }
    } catch (error) {
      if (this._reading === reading && !isAbort(error)) {
        this._setStatus({ ...this._status, phase: 'error', message: sentence(error) });
      }
    } finally {
      if (this._reading === reading) {
        this._reading = null;
        this._live.paused = false;
      }
    }
  }

  private get _busy(): boolean {
    return this._reading !== null;
  }

  private _setStatus(status: IStatus): void {
    this._status = status;
    if (!this._disposed) {
      this._statusChanged.emit(status);
    }
  }

  private readonly _submarine: ISubmarine;
  private readonly _page: number;
  private readonly _live: LiveQueue;
  private readonly _logs = new Map<string, ILogInfo>();
  private _filter: IFilter;
  private _sources = new Map<string, LogSource>();
  private _subscription: ISubscription | null = null;
  private _reading: AbortController | null = null;
  private _disposed = false;
  private _status: IStatus = { phase: 'loading', message: '', ended: false, behind: null };
  private readonly _changed = new Signal<this, undefined>(this);
  private readonly _moved = new Signal<this, Anchor>(this);
  private readonly _statusChanged = new Signal<this, IStatus>(this);
  private readonly _logsChanged = new Signal<this, undefined>(this);
}
