/**
 * Bounded queue of live log data between two frames. When it is full, the oldest bytes are dropped
 * and only their positions are kept.
 */

import type { IWhere } from './source';

export interface IChunk {
  readonly where: IWhere;
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

  push(chunk: IChunk): void {
    this._chunks.push(chunk);
    this._bytes += chunk.data.length;
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
      const { task, attempt, stream } = chunk.where;
      last.set(`${task}/${attempt}/${stream}`, chunk);
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

/** Run with the next frame, or by a timer if the page is hidden. */
export function nextFrame(run: () => void): void {
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
