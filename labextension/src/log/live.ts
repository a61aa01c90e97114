/**
 * What the channel brings between two frames, in order and bounded: where a page cannot keep up,
 * or is hidden, the oldest bytes are let go and only their place is kept.
 */

import type { IWhere } from './source';

export interface IChunk {
  readonly where: IWhere;
  /** Of the first byte; all bytes before it came already or do not come. */
  readonly offset: number;
  readonly data: Uint8Array;
  /** When it came, in ms since the epoch. */
  readonly time: number;
}

/** Bytes that wait at most. */
export const MOST_WAITING = 4 * 1024 * 1024;

export class LiveQueue {
  /**
   * @param take - Gets everything that waits, in order.
   * @param schedule - Runs a function soon: with the next frame in a browser.
   */
  constructor(
    take: (chunks: readonly IChunk[]) => void,
    schedule: (run: () => void) => void = nextFrame
  ) {
    this._take = take;
    this._schedule = schedule;
  }

  /** While it is paused everything waits. */
  get paused(): boolean {
    return this._paused;
  }
  set paused(paused: boolean) {
    this._paused = paused;
    if (!paused && this._chunks.length > 0) {
      this._plan();
    }
  }

  push(chunk: IChunk): void {
    this._chunks.push(chunk);
    this._bytes += chunk.data.length;
    while (this._bytes > MOST_WAITING) {
      this._forgetOldest();
    }
    this._plan();
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
    this._forgotten = 0;
  }

  private _plan(): void {
    if (!this._planned && !this._paused) {
      this._planned = true;
      this._schedule(() => {
        this._planned = false;
        this.flush();
      });
    }
  }

  private _forgetOldest(): void {
    const index = this._forgotten++;
    const chunk = this._chunks[index];
    if (chunk !== undefined) {
      this._bytes -= chunk.data.length;
      const offset = chunk.offset + chunk.data.length;
      this._chunks[index] = { ...chunk, offset, data: new Uint8Array() };
    }
    if (this._forgotten > 1000) {
      this._thin();
    }
  }

  /** Of the places of forgotten bytes only the last of each log matters. */
  private _thin(): void {
    const last = new Map<string, IChunk>();
    for (const chunk of this._chunks.slice(0, this._forgotten)) {
      const { task, attempt, stream } = chunk.where;
      last.set(`${task}/${attempt}/${stream}`, chunk);
    }
    this._chunks = [...last.values(), ...this._chunks.slice(this._forgotten)];
    this._forgotten = last.size;
  }

  private _chunks: IChunk[] = [];
  private _bytes = 0;
  /** So many at the beginning have lost their bytes. */
  private _forgotten = 0;
  private _paused = false;
  private _planned = false;
  private readonly _take: (chunks: readonly IChunk[]) => void;
  private readonly _schedule: (run: () => void) => void;
}

/** With the next frame; a hidden page has none, so there by a timer. */
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
