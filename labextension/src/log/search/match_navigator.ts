/** Navigate between matches of a search and between errors. */

import type { LogModel } from '../model';
import type { Anchor } from '../lines/reading';
import type { IFound, LogSearch } from './search';
import { ERROR_QUERY, type IQuery } from './search_query';
import type { LogSource } from '../lines/sources';
import type { Viewport } from '../view/viewport';

export interface IMatchNavigatorOptions {
  readonly model: LogModel;
  readonly viewport: Viewport;
  readonly search: LogSearch;
  /** Read around a position. */
  readonly goTo: (anchor: Anchor) => Promise<void>;
  /** The highlighted query has changed. */
  readonly onHighlight: () => void;
}

export class MatchNavigator {
  constructor(private readonly _options: IMatchNavigatorOptions) {}

  /** The query whose matches are highlighted. */
  get highlighted(): IQuery | null {
    return this._highlighted;
  }

  /** Start another search and go to the nearest match. */
  start(query: IQuery | null): void {
    const { search, model } = this._options;
    this._found = null;
    search.start(query);
    this._highlight(query);
    if (query !== null) {
      void this.step(model.follow);
    }
  }

  /** Repeat the search after the selection of logs has changed. */
  restart(): void {
    const { search } = this._options;
    this._found = null;
    search.start(search.query);
  }

  /** Go to the next match. Calls are executed one after the other. */
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

  /** Go to the next error; false if there is none, null if the search was aborted. */
  async goToError(backward: boolean): Promise<boolean | null> {
    const found = await this._options.search.around(ERROR_QUERY, this._from(backward), backward);
    if (!found) {
      return found === null ? false : null;
    }
    this._highlight(ERROR_QUERY);
    await this._show(found);
    return true;
  }

  private _highlight(query: IQuery | null): void {
    this._highlighted = query;
    this._options.onHighlight();
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

  /** Start of a search in each log: after the last match, otherwise at the visible position. */
  private _from(backward: boolean): Map<LogSource, number> {
    const { model, viewport } = this._options;
    const found = this._found;
    const number = found === null ? -1 : model.window.find(found.source, found.hit.offset);
    if (found !== null && number >= 0) {
      const { offset, length } = found.hit;
      const own = backward ? offset : offset + Math.max(1, length);
      return model.offsets(number).set(found.source, own);
    }
    if (!model.follow) {
      return model.offsets(viewport.top);
    }
    return new Map(model.sources.map(source => [source, backward ? source.length : 0]));
  }

  private _found: IFound | null = null;
  private _highlighted: IQuery | null = null;
  private _stepping: Promise<void> = Promise.resolve();
}
