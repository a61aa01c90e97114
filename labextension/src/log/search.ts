/**
 * Searching all logs in the window, on the server: the nearest match first, and meanwhile a count
 * that streams in. Holds no text of the log, makes no DOM.
 */

import { Signal, type ISignal } from '@lumino/signaling';
import { isAbort, sentence } from '../api/errors';
import type { IRest } from '../tokens';
import type { ISearchHit } from '../api/log_types';
import type { LogSource } from './source';

export interface IQuery {
  readonly text: string;
  readonly regex: boolean;
  readonly matchCase: boolean;
}

export interface IFound {
  readonly source: LogSource;
  readonly hit: ISearchHit;
}

/** What to say of a search. */
export interface ICount {
  /** Which one the reader is at, from 1; null: not known yet. */
  readonly current: number | null;
  readonly total: number;
  /** There may be more than `total`. */
  readonly more: boolean;
  readonly message: string;
}

/** What tells of trouble, for people who look for it: the same words as the server's preset. */
export const TROUBLE: IQuery = {
  text: [
    String.raw`Traceback \(most recent call last\)`,
    String.raw`\b[A-Z][A-Za-z]*(?:Error|Exception)\b`,
    String.raw`\b(?:ERROR|FATAL|CRITICAL|Error|Exception|Killed|Aborted)\b`,
    String.raw`\b(?:CUDA|NCCL|cuDNN) error\b`,
    String.raw`\b[Oo]ut of memory\b`,
    String.raw`\bSegmentation fault\b|\bcore dumped\b`
  ].join('|'),
  regex: true,
  matchCase: true
};

/** Matches that are counted in one log, and that one request asks for. */
const COUNTED = 20000;
const ASKED = 5000;
/** Logs that are searched at the same time. */
const AT_ONCE = 4;

export class LogSearch {
  constructor(
    private readonly _rest: IRest,
    private readonly _job: string
  ) {}

  get changed(): ISignal<this, ICount> {
    return this._changed;
  }
  get query(): IQuery | null {
    return this._query;
  }

  /** Search for something else, or nothing; counts in the background. */
  start(query: IQuery | null, sources: readonly LogSource[]): void {
    this._counting?.abort();
    this._looking?.abort();
    this._query = query;
    this._offsets.clear();
    this._current = null;
    this._message = '';
    this._more = false;
    if (query !== null) {
      void this._count(query, sources);
    }
    this._emit();
  }

  /** The match next to a place, round the end if need be; places are parts of the whole. */
  async next(
    sources: readonly LogSource[],
    from: ReadonlyMap<LogSource, number>,
    backward: boolean
  ): Promise<IFound | null> {
    if (this._query === null) {
      return null;
    }
    const near = await this.nearest(this._query, sources, from, backward);
    const turned = new Map(sources.map(source => [source, backward ? source.length : 0]));
    const found = near ?? (await this.nearest(this._query, sources, turned, backward));
    this._current = found;
    this._emit();
    return found;
  }

  /** The match of a query next to a place in one direction. */
  async nearest(
    query: IQuery,
    sources: readonly LogSource[],
    from: ReadonlyMap<LogSource, number>,
    backward: boolean
  ): Promise<IFound | null> {
    this._looking?.abort();
    const looking = (this._looking = new AbortController());
    const found: IFound[] = [];
    try {
      for (let i = 0; i < sources.length; i += AT_ONCE) {
        await Promise.all(
          sources.slice(i, i + AT_ONCE).map(async source => {
            const start = from.get(source) ?? 0;
            const hit = await this._first(query, source, start, backward, looking.signal);
            if (hit !== null) {
              found.push({ source, hit });
            }
          })
        );
      }
    } catch (error) {
      if (isAbort(error)) {
        return null;
      }
      this._message = sentence(error);
      this._emit();
    }
    found.sort((a, b) => (partOf(a) - partOf(b)) * (backward ? -1 : 1));
    return found[0] ?? null;
  }

  dispose(): void {
    this._counting?.abort();
    this._looking?.abort();
    Signal.clearData(this);
  }

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
      from = await this._ask(source, { ...query, from, backward, limit: 1 }, take, signal);
    }
    return hits[0] ?? null;
  }

  /** One request; where to go on, null: nowhere. A server may stop a long search half-way. */
  private async _ask(
    source: LogSource,
    wanted: IQuery & { from: number; backward: boolean; limit: number },
    take: (hit: ISearchHit) => void,
    signal: AbortSignal
  ): Promise<number | null> {
    const { task, attempt, stream } = source;
    const where = { task, attempt, stream };
    const { next } = await this._rest.search(this._job, where, wanted, take, signal);
    const onward = next !== null && (wanted.backward ? next < wanted.from : next > wanted.from);
    return onward ? next : null;
  }

  private async _count(query: IQuery, sources: readonly LogSource[]): Promise<void> {
    const counting = (this._counting = new AbortController());
    this._more = true;
    let cut = false;
    try {
      for (const source of sources) {
        const offsets: number[] = [];
        this._offsets.set(source, offsets);
        const take = (hit: ISearchHit) => {
          offsets.push(hit.offset);
          this._emitSoon();
        };
        let from: number | null = 0;
        while (from !== null && offsets.length < COUNTED) {
          const wanted = { ...query, from, backward: false, limit: ASKED };
          from = await this._ask(source, wanted, take, counting.signal);
        }
        cut ||= from !== null;
      }
      this._more = cut;
    } catch (error) {
      if (isAbort(error)) {
        return;
      }
      this._message = sentence(error);
    }
    if (this._counting === counting) {
      this._emit();
    }
  }

  /** The number of the match at which the reader is, where the count has come that far. */
  private _number(): number | null {
    const current = this._current;
    if (current === null) {
      return null;
    }
    let before = 0;
    const part = partOf(current);
    for (const [source, offsets] of this._offsets) {
      const to = source === current.source ? current.hit.offset : part * source.length;
      const index = offsets.findIndex(offset => offset >= to);
      before += index < 0 ? offsets.length : index;
    }
    const known = this._offsets.get(current.source)?.includes(current.hit.offset) ?? false;
    return known && (this._offsets.size === 1 || !this._more) ? before + 1 : null;
  }

  private _emitSoon(): void {
    this._timer ??= setTimeout(() => {
      this._emit();
    }, 100);
  }

  private _emit(): void {
    if (this._timer !== null) {
      clearTimeout(this._timer);
      this._timer = null;
    }
    let total = 0;
    for (const offsets of this._offsets.values()) {
      total += offsets.length;
    }
    const message = this._message;
    this._changed.emit({ current: this._number(), total, more: this._more, message });
  }

  private _query: IQuery | null = null;
  private _current: IFound | null = null;
  private _message = '';
  private _more = false;
  private _timer: ReturnType<typeof setTimeout> | null = null;
  private _counting: AbortController | null = null;
  private _looking: AbortController | null = null;
  private readonly _offsets = new Map<LogSource, number[]>();
  private readonly _changed = new Signal<this, ICount>(this);
}

/** The expression that marks a query's matches in a line; null where there is none in the browser. */
export function markOf(query: IQuery | null): RegExp | null {
  if (query === null || query.text === '') {
    return null;
  }
  const source = query.regex ? query.text : query.text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  try {
    return new RegExp(source, query.matchCase ? 'gu' : 'giu');
  } catch {
    return null;
  }
}

function partOf({ source, hit }: IFound): number {
  return hit.offset / Math.max(1, source.length);
}
