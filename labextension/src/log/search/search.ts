/** Search the selected logs on the server: find the nearest match and count all matches. */

import { Signal, type ISignal } from '@lumino/signaling';
import { isAbort, errorMessage } from '../../api/rest/errors';
import type { ISearchHit } from '../../api/types';
import type { IRest } from '../../tokens';
import { MatchCount } from './match_count';
import type { IQuery } from './search_query';
import type { LogSource } from '../lines/sources';

export interface IFound {
  readonly source: LogSource;
  readonly hit: ISearchHit;
}

/** State of a search for the search bar. */
export interface ICount {
  /** Number of the current match, from 1; null if it is not known yet. */
  readonly current: number | null;
  readonly total: number;
  /** There may be more than `total` matches. */
  readonly more: boolean;
  readonly message: string;
}

/** Number of logs that are searched concurrently. */
const AT_ONCE = 4;

export class LogSearch {
  /** @param sources - Returns the logs to search. */
  constructor(
    private readonly _rest: Pick<IRest, 'search'>,
    private readonly _job: string,
    private readonly _sources: () => readonly LogSource[]
  ) {
    this._count = new MatchCount(_rest, _job, _sources, () => {
      this._emit();
    });
  }

  get changed(): ISignal<this, ICount> {
    return this._changed;
  }
  get query(): IQuery | null {
    return this._query;
  }

  /** Start another search, or none; matches are counted in the background. */
  start(query: IQuery | null): void {
    this._controller?.abort();
    this._query = query;
    this._current = null;
    this._message = '';
    this._count.start(query);
    this._emit();
  }

  /** The logs may have grown, or there are new ones. */
  grown(): void {
    this._count.grown();
  }

  /**
   * The next match after a position, continuing at the other end; null if there is none.
   *
   * @param from - Start offset in each log.
   */
  async next(from: ReadonlyMap<LogSource, number>, backward: boolean): Promise<IFound | null> {
    if (this._query === null) {
      return null;
    }
    this._message = '';
    try {
      const found = await this.around(this._query, from, backward);
      if (found === undefined) {
        return null;
      }
      this._current = found;
    } catch (error) {
      this._message = errorMessage(error);
      this._current = null;
    }
    this._emit();
    return this._current;
  }

  /** The next match of any query; rejects if the search fails. undefined: it was aborted. */
  async around(
    query: IQuery,
    from: ReadonlyMap<LogSource, number>,
    backward: boolean
  ): Promise<IFound | null | undefined> {
    this._controller?.abort();
    const { signal } = (this._controller = new AbortController());
    const otherEnd = new Map(this._sources().map(source => [source, backward ? source.length : 0]));
    try {
      return (
        (await this._nearest(query, from, backward, signal)) ??
        (await this._nearest(query, otherEnd, backward, signal))
      );
    } catch (error) {
      if (isAbort(error)) {
        return undefined;
      }
      throw error;
    }
  }

  dispose(): void {
    this._count.dispose();
    this._controller?.abort();
    Signal.clearData(this);
  }

  /** The nearest of the next matches of all logs. */
  private async _nearest(
    query: IQuery,
    from: ReadonlyMap<LogSource, number>,
    backward: boolean,
    signal: AbortSignal
  ): Promise<IFound | null> {
    const found: IFound[] = [];
    const sources = this._sources();
    for (let i = 0; i < sources.length; i += AT_ONCE) {
      await Promise.all(
        sources.slice(i, i + AT_ONCE).map(async source => {
          const start = from.get(source) ?? 0;
          const hit = await this._first(query, source, start, backward, signal);
          if (hit !== null) {
            found.push({ source, hit });
          }
        })
      );
    }
    const order = (a: IFound, b: IFound) =>
      a.hit.time - b.hit.time || sources.indexOf(a.source) - sources.indexOf(b.source);
    return found.sort((a, b) => order(a, b) * (backward ? -1 : 1))[0] ?? null;
  }

  /** The first match in one log. The server may return partial results of a long search. */
  private async _first(
    query: IQuery,
    source: LogSource,
    start: number,
    backward: boolean,
    signal: AbortSignal
  ): Promise<ISearchHit | null> {
    const hits: ISearchHit[] = [];
    const take = (hit: ISearchHit) => hits.push(hit);
    let from: number | null = start;
    while (from !== null && hits.length === 0) {
      const before: number = from;
      const wanted = { ...query, from: before, backward, limit: 1 };
      const { next } = await this._rest.search(this._job, source, wanted, take, signal);
      const advanced = next !== null && (backward ? next < before : next > before);
      from = advanced ? next : null;
    }
    return hits[0] ?? null;
  }

  private _emit(): void {
    const { _count: count, _current: current } = this;
    this._changed.emit({
      current: current === null ? null : count.numberOf(current.source, current.hit),
      total: count.total,
      more: count.more,
      message: this._message || count.message
    });
  }

  private readonly _count: MatchCount;
  private _query: IQuery | null = null;
  private _current: IFound | null = null;
  private _message = '';
  private _controller: AbortController | null = null;
  private readonly _changed = new Signal<this, ICount>(this);
}
