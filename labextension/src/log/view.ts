/** The log view: the tool bar, the text, the scroll bar and a sentence on how things stand. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import type { ISubmarine } from '../tokens';
import { LogModel, type Anchor } from './model';
import type { IRowOptions } from './row_node';
import { Scrollbar } from './scrollbar';
import { LogSearch, markOf, TROUBLE, type IFound } from './search';
import { SearchBar } from './search_bar';
import type { IFilter, LogSource } from './source';
import { situation } from './situation';
import { ToolBar, type ILook } from './tool_bar';
import { Viewport } from './viewport';

export interface ILogViewOptions {
  readonly submarine: ISubmarine;
  readonly job: string;
  readonly task: string;
  readonly look: ILook;
  /** Begin at the end and stay there; else at the beginning. */
  readonly follow: boolean;
  readonly trans: TranslationBundle;
}

export class LogView extends Widget {
  constructor(options: ILogViewOptions) {
    super();
    const { submarine, job, task, look, follow, trans } = options;
    this._trans = trans;
    this._submarine = submarine;
    this._look = look;
    this.addClass('jp-Submarine-log');
    const filter: IFilter = { task, stream: '', attempt: 'latest' };
    this.model = new LogModel({ submarine, job, filter });
    this.model.follow = follow;
    this._search = new LogSearch(submarine.rest, job);
    this._viewport = new Viewport(this.model, this._rowOptions());
    this._viewport.node.setAttribute('role', 'region');
    this._viewport.node.classList.toggle('jp-mod-wrap', look.wrap);
    this._viewport.node.setAttribute('aria-label', trans.__('Log of %1', job));
    this._scrollbar = new Scrollbar(trans.__('Place in the log'), part => {
      void this._goToPart(part);
    });
    this._searchBar = new SearchBar({
      trans,
      onQuery: () => {
        this._startSearch();
      },
      onStep: backward => {
        void this._step(backward);
      }
    });
    this._toolBar = this._makeToolBar(filter);
    this._status = document.createElement('div');
    this._status.className = 'jp-Submarine-log-status';
    this._assemble();
    this._connect();
    void this.model.open();
  }

  readonly model: LogModel;

  /** Show the log of another task. */
  setTask(task: string): void {
    if (task !== this.model.filter.task) {
      void this.model.setFilter({ ...this.model.filter, task, attempt: 'latest' });
    }
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this.model.dispose();
      this._search.dispose();
      super.dispose();
    }
  }

  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this._viewport.node.focus();
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._viewport.follow = this.model.follow;
  }

  private _assemble(): void {
    const body = document.createElement('div');
    body.className = 'jp-Submarine-log-body';
    this._viewport.node.id = `jp-Submarine-log-${++count}`;
    this._scrollbar.node.setAttribute('aria-controls', this._viewport.node.id);
    body.append(this._viewport.node, this._scrollbar.node);
    this._status.setAttribute('role', 'status');
    this.node.append(this._toolBar.node, body, this._status);
    this.node.addEventListener('keydown', event => {
      this._key(event);
    });
  }

  private _connect(): void {
    this.model.statusChanged.connect(this._showStatus);
    this.model.logsChanged.connect(() => {
      this._toolBar.update(this.model.logs);
      this._viewport.setOptions(this._rowOptions());
    });
    this._search.changed.connect((_, found) => {
      this._searchBar.show(found);
    });
    this._viewport.scrolled.connect(() => {
      this._place();
    });
    this._viewport.followChanged.connect((_, follow) => {
      this._toolBar.follow = follow;
      this._showStatus();
    });
    this._submarine.channel.connectedChanged.connect(this._showStatus);
    this.disposed.connect(() => {
      this._submarine.channel.connectedChanged.disconnect(this._showStatus);
    });
  }

  private _makeToolBar(filter: IFilter): ToolBar {
    return new ToolBar(
      {
        trans: this._trans,
        filter,
        look: this._look,
        follow: this.model.follow,
        onFilter: chosen => {
          this._found = null;
          void this.model.setFilter(chosen).then(() => {
            this._search.start(this._search.query, this.model.sources);
          });
        },
        onLook: look => {
          this._look = look;
          this._viewport.node.classList.toggle('jp-mod-wrap', look.wrap);
          this._viewport.setOptions(this._rowOptions());
        },
        onFollow: follow => {
          this._setFollow(follow);
        },
        onTrouble: backward => {
          void this._goToTrouble(backward);
        },
        downloadUrl: log => this._submarine.rest.downloadUrl(this.model.job, log)
      },
      this._searchBar.node
    );
  }

  private _rowOptions(): IRowOptions {
    const sources = this.model.sources;
    const tasks = new Set(sources.map(source => source.task));
    const attempts = new Set(sources.map(source => `${source.task}/${source.attempt}`));
    return {
      trans: this._trans,
      label: attempts.size > tasks.size ? 'attempt' : tasks.size > 1 ? 'task' : 'none',
      times: this._look.times,
      mark: markOf(this._marked),
      onRead: row => {
        void this._goTo({ source: row.source, offset: row.offset });
      }
    };
  }

  private _setFollow(follow: boolean): void {
    if (follow && this.model.canLater) {
      void this._goTo('end');
    } else {
      this._viewport.follow = follow;
    }
  }

  private async _goTo(anchor: Anchor): Promise<void> {
    this._viewport.follow = anchor === 'end' && !this.model.canLater;
    await this.model.goTo(anchor);
  }

  private async _goToPart(part: number): Promise<void> {
    if (part > 0.999) {
      await this._goTo('end');
    } else {
      this._viewport.follow = false;
      await (part < 0.001 ? this.model.goTo('start') : this.model.goToPart(part));
    }
  }

  /** Ctrl+F, F8 and F3 in the whole view; Home and End in the text. */
  private _key(event: KeyboardEvent): void {
    const accel = event.ctrlKey || event.metaKey;
    const inText = event.target === this._viewport.node;
    if (accel && event.key.toLowerCase() === 'f') {
      this._searchBar.focus();
    } else if (event.key === 'F3') {
      void this._step(event.shiftKey);
    } else if (event.key === 'F8') {
      void this._goToTrouble(event.shiftKey);
    } else if (inText && event.key === 'Home') {
      void this._goToPart(0);
    } else if (inText && event.key === 'End') {
      this._setFollow(true);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private _startSearch(): void {
    const query = this._searchBar.query;
    this._marked = query;
    this._found = null;
    this._search.start(query, this.model.sources);
    this._viewport.setOptions(this._rowOptions());
    if (query !== null) {
      void this._step(this.model.follow);
    }
  }

  /** Go to the match next to the last one: who presses Enter twice goes on by two. */
  private async _step(backward: boolean): Promise<void> {
    const { query } = this._search;
    const before = this._stepping;
    const step = async (): Promise<void> => {
      await before;
      if (query !== this._search.query || this.isDisposed) {
        return;
      }
      const from = this._from(backward);
      const found = await this._search.next(this.model.sources, from, backward);
      if (found !== null && query === this._search.query) {
        await this._show(found);
      }
    };
    this._stepping = step();
    await this._stepping;
  }

  private async _goToTrouble(backward: boolean): Promise<void> {
    const { sources } = this.model;
    const from = this._from(backward);
    let found = await this._search.nearest(TROUBLE, sources, from, backward);
    if (found === null) {
      const turned = new Map(sources.map(source => [source, backward ? source.length : 0]));
      found = await this._search.nearest(TROUBLE, sources, turned, backward);
    }
    if (found === null) {
      this._say(this._trans.__('No line in this log looks like an error.'));
      return;
    }
    this._marked = TROUBLE;
    this._viewport.setOptions(this._rowOptions());
    await this._show(found);
  }

  private async _show(found: IFound): Promise<void> {
    this._found = found;
    const { source, hit } = found;
    if (!this._viewport.reveal(source, hit.offset)) {
      await this._goTo({ source, offset: hit.line_offset });
      this._viewport.reveal(source, hit.offset);
    }
  }

  /** Where a search begins in each log: behind the last match, else at the place on the screen. */
  private _from(backward: boolean): Map<LogSource, number> {
    const { sources } = this.model;
    const found = this._found;
    if (found !== null && sources.includes(found.source)) {
      const part = found.hit.offset / Math.max(1, found.source.length);
      const own = backward ? found.hit.offset : found.hit.offset + Math.max(1, found.hit.length);
      return new Map(
        sources.map(one => [one, one === found.source ? own : Math.floor(part * one.length)])
      );
    }
    const part = this.model.follow
      ? 1
      : this.model.position(this._viewport.top) / Math.max(1, this.model.total);
    const whole = backward && this.model.follow ? 1 : part;
    return new Map(
      sources.map(one => [one, Math.floor((backward ? whole : part % 1) * one.length)])
    );
  }

  private _place(): void {
    this._placing ??= requestAnimationFrame(() => {
      this._placing = null;
      const total = Math.max(1, this.model.total);
      const top = this._viewport.top;
      const from = this.model.position(top) / total;
      const to = this.model.position(this._viewport.bottom) / total;
      const all = !this.model.canEarlier && !this.model.canLater && this._viewport.fits;
      this._scrollbar.set(
        all ? 0 : this.model.follow ? 1 - (to - from) : from,
        all ? 1 : to - from
      );
      this._showStatus();
    });
  }

  private readonly _showStatus = (): void => {
    const { text, retry } = situation(this._trans, {
      status: this.model.status,
      connected: this._submarine.channel.connected,
      logs: this.model.logs.length,
      total: this.model.total,
      skipped: this.model.window.skipped,
      follow: this.model.follow,
      place: this.model.position(this._viewport.top)
    });
    this._say(text, retry);
  };

  private _say(text: string, retry = false): void {
    if (this._status.textContent !== text + (retry ? this._trans.__('Try again') : '')) {
      this._status.replaceChildren(text);
      if (retry) {
        const again = document.createElement('button');
        again.type = 'button';
        again.className = 'jp-Submarine-log-link';
        again.textContent = this._trans.__('Try again');
        again.addEventListener('click', () => void this.model.open());
        this._status.append(again);
      }
    }
  }

  private readonly _trans: TranslationBundle;
  private readonly _submarine: ISubmarine;
  private readonly _search: LogSearch;
  private readonly _viewport: Viewport;
  private readonly _scrollbar: Scrollbar;
  private readonly _searchBar: SearchBar;
  private readonly _toolBar: ToolBar;
  private readonly _status: HTMLElement;
  private _look: ILook;
  private _found: IFound | null = null;
  private _stepping: Promise<void> = Promise.resolve();
  private _marked: Parameters<typeof markOf>[0] = null;
  private _placing: number | null = null;
}

let count = 0;
