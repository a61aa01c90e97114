/** The log view: toolbar, text, scroll bar and status line. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import { errorMessage } from '../../api/rest/errors';
import type { ISubmarine } from '../../tokens';
import { MatchNavigator } from '../search/match_navigator';
import { LogModel } from '../model';
import { Navigation } from './navigation';
import { labelOf, type IRowOptions } from './row_node';
import { Scrollbar } from './scrollbar';
import { LogSearch } from '../search/search';
import { SearchBar } from '../search/search_bar';
import { markOf, type IQuery } from '../search/search_query';
import { statusText } from './status_text';
import type { IFilter } from '../lines/sources';
import { Toolbar, type IAppearance } from './toolbar';
import { Viewport } from './viewport';

export interface ILogViewOptions {
  readonly submarine: ISubmarine;
  readonly job: string;
  readonly task: string;
  readonly appearance: IAppearance;
  /** Start at the end and follow new lines; otherwise start at the beginning. */
  readonly follow: boolean;
  readonly trans: TranslationBundle;
}

export class LogView extends Widget {
  constructor(options: ILogViewOptions) {
    super();
    const { submarine, job, task, appearance, follow, trans } = options;
    this._trans = trans;
    this._submarine = submarine;
    this._appearance = appearance;
    this.addClass('jp-Submarine-log');
    const filter: IFilter = { task, stream: '', attempt: 'latest' };
    this.model = new LogModel({ submarine, job, filter });
    this.model.follow = follow;
    this._search = new LogSearch(submarine.rest, job, () => this.model.sources);
    this._viewport = new Viewport(this.model, this._rowOptions(null), trans.__('Log of %1', job));
    this._viewport.node.classList.toggle('jp-mod-wrap', appearance.wrap);
    this._scrollbar = new Scrollbar(trans.__('Position in the log'), part => {
      void this._navigation.goToPart(part);
    });
    this._navigation = new Navigation(this.model, this._viewport, this._scrollbar);
    this._matches = this._makeMatchNavigator();
    this._searchBar = new SearchBar({
      trans,
      onQuery: query => {
        this._matches.start(query);
      },
      onStep: backward => void this._matches.step(backward)
    });
    this._toolbar = this._makeToolbar(filter);
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
    this.node.append(this._toolbar.node, body, this._status.node);
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
      this._toolbar.update(this.model.logs);
      this._viewport.setOptions(this._rowOptions());
    });
    this._search.changed.connect((_, found) => {
      this._searchBar.show(found);
    });
    this._viewport.scrolled.connect(() => {
      this._navigation.placeSoon(this._showStatus);
    });
    this._viewport.followChanged.connect((_, follow) => {
      this._toolbar.follow = follow;
      this._showStatus();
    });
    this._submarine.channel.connectedChanged.connect(this._showStatus);
    this.disposed.connect(() => {
      this._submarine.channel.connectedChanged.disconnect(this._showStatus);
    });
  }

  private _makeToolbar(filter: IFilter): Toolbar {
    return new Toolbar(
      {
        trans: this._trans,
        filter,
        appearance: this._appearance,
        follow: this.model.follow,
        onFilter: chosen => {
          void this._setFilter(chosen);
        },
        onAppearance: appearance => {
          this._appearance = appearance;
          this._viewport.node.classList.toggle('jp-mod-wrap', appearance.wrap);
          this._viewport.setOptions(this._rowOptions());
        },
        onFollow: follow => {
          this._navigation.setFollow(follow);
        },
        onNextError: backward => void this._goToError(backward),
        downloadUrl: log => this._submarine.rest.downloadUrl(this.model.job, log)
      },
      this._searchBar.node
    );
  }

  private _makeMatchNavigator(): MatchNavigator {
    return new MatchNavigator({
      model: this.model,
      viewport: this._viewport,
      search: this._search,
      goTo: anchor => this._navigation.goTo(anchor),
      onHighlight: () => {
        this._viewport.setOptions(this._rowOptions());
      }
    });
  }

  private async _goToError(backward: boolean): Promise<void> {
    try {
      if ((await this._matches.goToError(backward)) === false) {
        this._status.show(this._trans.__('No line in this log looks like an error.'));
      }
    } catch (error) {
      this._status.show(errorMessage(error));
    }
  }

  private _rowOptions(highlighted: IQuery | null = this._matches.highlighted): IRowOptions {
    return {
      trans: this._trans,
      label: labelOf(this.model.sources),
      times: this._appearance.times,
      mark: markOf(highlighted),
      onLoad: row => {
        void this._navigation.goTo({ source: row.source, offset: row.offset });
      }
    };
  }

  private async _setFilter(filter: IFilter): Promise<void> {
    this._toolbar.filter = filter;
    await this.model.setFilter(filter);
    this._matches.restart();
  }

  private _key(event: KeyboardEvent): void {
    const action = keyAction(event, event.target === this._viewport.node);
    if (action === null) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    const actions: Record<KeyAction, () => void> = {
      search: () => {
        this._searchBar.focus();
      },
      match: () => void this._matches.step(event.shiftKey),
      error: () => void this._goToError(event.shiftKey),
      begin: () => void this._navigation.goToPart(0),
      end: () => {
        this._navigation.setFollow(true);
      }
    };
    actions[action]();
  }

  private readonly _showStatus = (): void => {
    const { text, retry } = statusText(this._trans, {
      status: this.model.status,
      connected: this._submarine.channel.connected,
      logs: this.model.logs.length,
      total: this.model.total,
      skipped: this.model.window.skipped,
      follow: this.model.follow,
      position: this.model.position(this._viewport.top)
    });
    this._status.show(text, retry);
  };

  private readonly _trans: TranslationBundle;
  private readonly _submarine: ISubmarine;
  private readonly _search: LogSearch;
  private readonly _matches: MatchNavigator;
  private readonly _navigation: Navigation;
  private readonly _viewport: Viewport;
  private readonly _scrollbar: Scrollbar;
  private readonly _searchBar: SearchBar;
  private readonly _toolbar: Toolbar;
  private readonly _status: StatusLine;
  private _appearance: IAppearance;
}

export type KeyAction = 'search' | 'match' | 'error' | 'begin' | 'end';

/** The action of a key: Ctrl+F, F3 and F8 in the whole view, Home and End in the text. */
export function keyAction(event: KeyboardEvent, inText: boolean): KeyAction | null {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'f') {
    return 'search';
  }
  switch (event.key) {
    case 'F3':
      return 'match';
    case 'F8':
      return 'error';
    case 'Home':
      return inText ? 'begin' : null;
    case 'End':
      return inText ? 'end' : null;
    default:
      return null;
  }
}

export class StatusLine {
  constructor(
    private readonly _trans: TranslationBundle,
    private readonly _onRetry: () => void
  ) {
    this.node = document.createElement('div');
    this.node.className = 'jp-Submarine-log-status';
    this.node.setAttribute('role', 'status');
  }

  readonly node: HTMLElement;

  /** Show a text. A repeated text is ignored, so that screen readers read it once. */
  show(text: string, retry = false): void {
    const shown = `${String(retry)} ${text}`;
    if (shown === this._shown) {
      return;
    }
    this._shown = shown;
    this.node.replaceChildren(text);
    if (retry) {
      const button = document.createElement('button');
      button.type = 'button';
      button.className = 'jp-Submarine-log-link';
      button.textContent = this._trans.__('Try again');
      button.addEventListener('click', this._onRetry);
      this.node.append(button);
    }
  }

  private _shown = '';
}
