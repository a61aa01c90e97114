/** The log view: toolbar, text, scroll bar and status line. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import { sentence } from '../api/errors';
import type { ISubmarine } from '../tokens';
import { Finder } from './finder';
import { meaningOf, type KeyMeaning } from './keys';
import { LineTimes } from './line_times';
import { LogModel } from './model';
import { Navigation } from './navigation';
import { labelOf, type IRowOptions } from './row_node';
import { Scrollbar } from './scrollbar';
import { LogSearch } from './search';
import { SearchBar } from './search_bar';
import { markOf, type IQuery } from './search_query';
import { situation } from './situation';
import type { IFilter } from './source';
import { StatusLine } from './status_line';
import { ToolBar, type ILook } from './tool_bar';
import { Viewport } from './viewport';

export interface ILogViewOptions {
  readonly submarine: ISubmarine;
  readonly job: string;
  readonly task: string;
  readonly look: ILook;
  /** Start at the end and follow new lines; otherwise start at the beginning. */
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
    this._search = new LogSearch(submarine.rest, job, () => this.model.sources);
    this._viewport = new Viewport(this.model, this._rowOptions(null), trans.__('Log of %1', job));
    this._viewport.node.classList.toggle('jp-mod-wrap', look.wrap);
    this._scrollbar = new Scrollbar(trans.__('Position in the log'), part => {
      void this._navigation.goToPart(part);
    });
    this._navigation = new Navigation(this.model, this._viewport, this._scrollbar);
    this._finder = this._makeFinder();
    this._times = new LineTimes(submarine.rest, this.model, () => {
      this._viewport.setOptions(this._rowOptions());
    });
    this._times.wanted = look.times;
    this._searchBar = new SearchBar({
      trans,
      onQuery: query => {
        this._finder.start(query);
      },
      onStep: backward => void this._finder.step(backward)
    });
    this._toolBar = this._makeToolBar(filter);
    this._status = new StatusLine(trans, () => void this.model.open());
    this._assemble();
    this._connect();
    void this.model.open();
  }

  readonly model: LogModel;

  /** Select another task. */
  setTask(task: string): void {
    if (task !== this.model.filter.task) {
      void this._setFilter({ ...this.model.filter, task, attempt: 'latest' });
    }
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._navigation.dispose();
      this._times.dispose();
      this.model.dispose();
      this._search.dispose();
      this._searchBar.dispose();
      this._scrollbar.dispose();
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
    this._scrollbar.node.setAttribute('aria-controls', this._viewport.node.id);
    body.append(this._viewport.node, this._scrollbar.node);
    this.node.append(this._toolBar.node, body, this._status.node);
    this.node.addEventListener('keydown', event => {
      this._key(event);
    });
  }

  private _connect(): void {
    this.model.statusChanged.connect(this._showStatus);
    this.model.changed.connect(() => {
      this._search.grown();
    });
    this.model.logsChanged.connect(() => {
      this._toolBar.update(this.model.logs);
      this._viewport.setOptions(this._rowOptions());
    });
    this._search.changed.connect((_, found) => {
      this._searchBar.show(found);
    });
    this._viewport.scrolled.connect(() => {
      this._navigation.placeSoon(this._showStatus);
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
          void this._setFilter(chosen);
        },
        onLook: look => {
          this._look = look;
          this._times.wanted = look.times;
          this._viewport.node.classList.toggle('jp-mod-wrap', look.wrap);
          this._viewport.setOptions(this._rowOptions());
        },
        onFollow: follow => {
          this._navigation.setFollow(follow);
        },
        onTrouble: backward => void this._goToTrouble(backward),
        downloadUrl: log => this._submarine.rest.downloadUrl(this.model.job, log)
      },
      this._searchBar.node
    );
  }

  private _makeFinder(): Finder {
    return new Finder({
      model: this.model,
      viewport: this._viewport,
      search: this._search,
      goTo: anchor => this._navigation.goTo(anchor),
      onMarked: () => {
        this._viewport.setOptions(this._rowOptions());
      }
    });
  }

  private async _goToTrouble(backward: boolean): Promise<void> {
    try {
      if ((await this._finder.goToTrouble(backward)) === false) {
        this._status.say(this._trans.__('No line in this log looks like an error.'));
      }
    } catch (error) {
      this._status.say(sentence(error));
    }
  }

  private _rowOptions(marked: IQuery | null = this._finder.marked): IRowOptions {
    return {
      trans: this._trans,
      label: labelOf(this.model.sources),
      times: this._look.times,
      mark: markOf(marked),
      onRead: row => {
        void this._navigation.goTo({ source: row.source, offset: row.offset });
      }
    };
  }

  private async _setFilter(filter: IFilter): Promise<void> {
    this._toolBar.filter = filter;
    await this.model.setFilter(filter);
    this._finder.restart();
  }

  private _key(event: KeyboardEvent): void {
    const meaning = meaningOf(event, event.target === this._viewport.node);
    if (meaning === null) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    const acts: Record<KeyMeaning, () => void> = {
      search: () => {
        this._searchBar.focus();
      },
      match: () => void this._finder.step(event.shiftKey),
      trouble: () => void this._goToTrouble(event.shiftKey),
      begin: () => void this._navigation.goToPart(0),
      end: () => {
        this._navigation.setFollow(true);
      }
    };
    acts[meaning]();
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
    this._status.say(text, retry);
  };

  private readonly _trans: TranslationBundle;
  private readonly _submarine: ISubmarine;
  private readonly _search: LogSearch;
  private readonly _finder: Finder;
  private readonly _navigation: Navigation;
  private readonly _times: LineTimes;
  private readonly _viewport: Viewport;
  private readonly _scrollbar: Scrollbar;
  private readonly _searchBar: SearchBar;
  private readonly _toolBar: ToolBar;
  private readonly _status: StatusLine;
  private _look: ILook;
}
