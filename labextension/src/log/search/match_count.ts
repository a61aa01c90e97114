/**
 * Count the matches of a query on the server, log by log, and continue while the logs grow. Stores
 * offsets and times of matches.
 */

import { isAbort, errorMessage } from '../../api/rest/errors';
import type { ISearchHit } from '../../api/types';
import type { IRest } from '../../tokens';
import type { IQuery } from './search_query';
import type { LogSource } from '../lines/sources';

/** Maximum number of matches per log, and per request. */
const MAX_COUNTED = 20000;
const PER_REQUEST = 5000;
/** Bytes before the end that are searched again: a match may have been written in two parts. */
const OVERLAP = 4096;
/**
 * Minimum pause between counts in milliseconds, and its factor to the duration of the last count.
 */
const PAUSE = 1000;
const PAUSE_FACTOR = 3;

/** The count of one log. */
interface ICounted {
  /** Offset and time of each match. */
  readonly matches: { readonly offset: number; readonly time: number }[];
  /** End of the last match, and of the searched part. */
  lastEnd: number;
  end: number;
}

export class MatchCount {
  /**
   * @param sources - Returns the logs to search.
   * @param onChange - Called at a limited rate when the count has changed.
   */
  constructor(
    private readonly _rest: Pick<IRest, 'search'>,
    private readonly _job: string,
    private readonly _sources: () => readonly LogSource[],
    private readonly _onChange: () => void
  ) {}

  get total(): number {
    let total = 0;
    for (const { matches } of this._counted.values()) {
      total += matches.length;
    }
    return total;
  }

  /** Whether there may be more than `total` matches. */
  get more(): boolean {
    return this._more;
  }

  /** Error of the last count; empty if there is none. */
  get message(): string {
    return this._message;
  }

  /** Count the matches of another query; null stops counting. */
  start(query: IQuery | null): void {
    this._stop();
    this._query = query;
    this._counted.clear();
    this._message = '';
    this._more = query !== null;
    void this._count();
  }

  /** The logs may have grown: continue counting after a pause. */
  grown(): void {
    if (this._query !== null && this._counting === null && this._isBehind()) {
      this._countTimer ??= setTimeout(() => {
        this._countTimer = null;
        void this._count();
      }, this._pause);
    }
  }

  /** Number of a match in order of time, from 1; null if it is not counted yet. */
  numberOf(source: LogSource, { offset, time }: ISearchHit): number | null {
    const own = this._counted.get(source.key)?.matches.findIndex(one => one.offset === offset);
    if (own === undefined || own < 0 || (this._counted.size > 1 && this._more)) {
      return null;
    }
    let number = own + 1;
    let later = false;
    for (const { key } of this._sources()) {
      if (key === source.key) {
        later = true;
      } else {
        const matches = this._counted.get(key)?.matches ?? [];
        const index = matches.findIndex(one => one.time > time || (later && one.time === time));
        number += index < 0 ? matches.length : index;
      }
    }
    return number;
  }

  dispose(): void {
    this._stop();
    this._query = null;
  }

  private _stop(): void {
    this._counting?.abort();
    this._counting = null;
    clearTimeout(this._countTimer ?? undefined);
    clearTimeout(this._notifyTimer ?? undefined);
    this._countTimer = this._notifyTimer = null;
  }

  private _isBehind(): boolean {
    return this._sources().some(source => {
      const { end = 0, matches = [] } = this._counted.get(source.key) ?? {};
      return source.length > end && matches.length < MAX_COUNTED;
    });
  }

  private async _count(): Promise<void> {
    const query = this._query;
    if (query === null) {
      return;
    }
    const counting = (this._counting = new AbortController());
    const began = Date.now();
    let cut = false;
    try {
      for (const source of this._sources()) {
        cut = !(await this._countOne(query, source, counting.signal)) || cut;
      }
      this._more = cut;
      this._message = '';
    } catch (error) {
      if (isAbort(error)) {
        return;
      }
      this._message = errorMessage(error);
    }
    if (this._counting === counting) {
      this._counting = null;
      this._pause = PAUSE + PAUSE_FACTOR * (Date.now() - began);
      this._onChange();
      this.grown();
    }
  }

  /** Continue counting one log; returns whether its end was reached. */
  private async _countOne(query: IQuery, source: LogSource, signal: AbortSignal): Promise<boolean> {
    const known = this._counted.get(source.key) ?? { matches: [], lastEnd: 0, end: 0 };
    this._counted.set(source.key, known);
    const take = (hit: ISearchHit) => {
      known.matches.push({ offset: hit.offset, time: hit.time });
      known.lastEnd = hit.offset + hit.length;
      this._notifySoon();
    };
    let from = resume(known);
    while (known.matches.length < MAX_COUNTED) {
      const wanted = { ...query, from, backward: false, limit: PER_REQUEST };
      const { next, scanned } = await this._rest.search(this._job, source, wanted, take, signal);
      known.end = next ?? from + scanned;
      if (next === null || next <= from) {
        return next === null;
      }
      from = next;
    }
    return false;
  }

  private _notifySoon(): void {
    this._notifyTimer ??= setTimeout(() => {
      this._notifyTimer = null;
      this._onChange();
    }, 100);
  }

  private _query: IQuery | null = null;
  private _more = false;
  private _message = '';
  private _pause = PAUSE;
  private _counting: AbortController | null = null;
  private _countTimer: ReturnType<typeof setTimeout> | null = null;
  private _notifyTimer: ReturnType<typeof setTimeout> | null = null;
  private readonly _counted = new Map<string, ICounted>();
}

/** Where counting continues; a match that may have been cut off is counted again. */
function resume(known: ICounted): number {
  const last = known.matches.at(-1);
  if (last !== undefined && known.lastEnd >= known.end) {
    known.matches.pop();
    return last.offset;
  }
  return Math.max(known.lastEnd, known.end - OVERLAP);
}
