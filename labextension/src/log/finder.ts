/**
 * Going through a log from match to match and from error to error: from where the next one is
 * looked for, and bringing it into view. The searching is `search.ts`'s, the field `search_bar.ts`'s.
 */

import type { LogModel } from './model';
import type { Anchor } from './reading';
import type { IFound, LogSearch } from './search';
import { TROUBLE, type IQuery } from './search_query';
import type { LogSource } from './source';
import type { Viewport } from './viewport';

export interface IFinderOptions {
  readonly model: LogModel;
  readonly viewport: Viewport;
  readonly search: LogSearch;
  /** Read around a place. */
  readonly goTo: (anchor: Anchor) => Promise<void>;
  /** Something else is to be marked in the lines. */
  readonly onMarked: () => void;
}

export class Finder {
  constructor(private readonly _options: IFinderOptions) {}

  /** What is to be marked in the lines; null: nothing. */
  get marked(): IQuery | null {
    return this._marked;
  }

  /** Search for something else, and go to its nearest match. */
  start(query: IQuery | null): void {
    const { search, model } = this._options;
    this._found = null;
    search.start(query);
    this._mark(query);
    if (query !== null) {
      void this.step(model.follow);
    }
  }

  /** Other logs are shown: search them for the same. */
  restart(): void {
    const { search } = this._options;
    this._found = null;
    search.start(search.query);
  }

  /** Go to the match next to the last one: who presses Enter twice goes on by two. */
  async step(backward: boolean): Promise<void> {
    const { search, model } = this._options;
    const { query } = search;
    const before = this._stepping;
    const step = async (): Promise<void> => {
      await before;
      if (query !== search.query || model.isDisposed) {
        return;
      }
      const found = await search.next(this._from(backward), backward);
      if (found && query === search.query) {
        await this._show(found);
      }
    };
    this._stepping = step();
    await this._stepping;
  }

  /** Go to the next line that tells of an error; false: there is none; null: it was given up. */
  async goToTrouble(backward: boolean): Promise<boolean | null> {
    const found = await this._options.search.around(TROUBLE, this._from(backward), backward);
    if (!found) {
      return found === null ? false : null;
    }
    this._mark(TROUBLE);
    await this._show(found);
    return true;
  }

  private _mark(query: IQuery | null): void {
    this._marked = query;
    this._options.onMarked();
  }

  private async _show(found: IFound): Promise<void> {
    const { viewport, goTo } = this._options;
    this._found = found;
    const { source, hit } = found;
    if (!viewport.reveal(source, hit.offset)) {
      await goTo({ source, offset: hit.line_offset });
      viewport.reveal(source, hit.offset);
    }
  }

  /** Where a search begins in each log: behind the last match, else at the place on the screen. */
  private _from(backward: boolean): Map<LogSource, number> {
    const { model, viewport } = this._options;
    const { sources } = model;
    const found = this._found;
    if (found !== null && sources.includes(found.source)) {
      const part = found.hit.offset / Math.max(1, found.source.length);
      const own = backward ? found.hit.offset : found.hit.offset + Math.max(1, found.hit.length);
      return new Map(
        sources.map(one => [one, one === found.source ? own : Math.floor(part * one.length)])
      );
    }
    const part = model.follow ? 1 : model.position(viewport.top) / Math.max(1, model.total);
    const whole = backward && model.follow ? 1 : part;
    return new Map(
      sources.map(one => [one, Math.floor((backward ? whole : part % 1) * one.length)])
    );
  }

  private _found: IFound | null = null;
  private _marked: IQuery | null = null;
  private _stepping: Promise<void> = Promise.resolve();
}
