/** The last lines of a log as a small part of something else, such as a card: no tool bar. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import type { ISubmarine } from '../tokens';
import { LogModel } from './model';
import { situation } from './situation';
import { Viewport } from './viewport';

/** Bytes that are read at first. */
const LAST = 32 * 1024;

export interface ILogPaneOptions {
  readonly submarine: ISubmarine;
  readonly job: string;
  /** Name of the task; empty: all tasks. */
  readonly task: string;
  readonly trans: TranslationBundle;
}

/**
 * The end of a log, following it: put `node` where it shall be and dispose of the pane with it.
 */
export class LogPane implements IDisposable {
  constructor(options: ILogPaneOptions) {
    const { submarine, job, task, trans } = options;
    this._options = options;
    this.node = document.createElement('div');
    this.node.className = 'jp-Submarine-log jp-mod-pane';
    this._model = new LogModel({
      submarine,
      job,
      filter: { task, stream: '', attempt: 'latest' },
      page: LAST
    });
    this._viewport = new Viewport(this._model, this._rowOptions());
    this._viewport.node.setAttribute('role', 'region');
    this._viewport.node.setAttribute('aria-label', trans.__('Last lines of the log of %1', job));
    this._viewport.node.classList.add('jp-mod-wrap');
    this._status = document.createElement('div');
    this._status.className = 'jp-Submarine-log-status';
    this.node.append(this._viewport.node, this._status);
    const show = () => {
      this._showStatus();
    };
    this._model.statusChanged.connect(show);
    this._model.changed.connect(show);
    this._viewport.followChanged.connect(show);
    this._model.logsChanged.connect(() => {
      this._viewport.setOptions(this._rowOptions());
    });
    submarine.channel.connectedChanged.connect(this._showStatus);
    void this._model.open();
  }

  readonly node: HTMLElement;

  get isDisposed(): boolean {
    return this._model.isDisposed;
  }

  dispose(): void {
    if (!this.isDisposed) {
      this._options.submarine.channel.connectedChanged.disconnect(this._showStatus);
      this._model.dispose();
      this.node.remove();
    }
  }

  private _rowOptions() {
    const tasks = new Set(this._model.sources.map(source => source.task));
    return {
      trans: this._options.trans,
      label: tasks.size > 1 ? ('task' as const) : ('none' as const),
      times: false,
      mark: null,
      onRead: () => {
        this._viewport.follow = false;
        void this._model.earlier();
      }
    };
  }

  private readonly _showStatus = (): void => {
    const { text } = situation(this._options.trans, {
      status: this._model.status,
      connected: this._options.submarine.channel.connected,
      logs: this._model.logs.length,
      total: this._model.total,
      skipped: this._model.window.skipped,
      follow: this._model.follow,
      place: this._model.position(this._viewport.top)
    });
    if (this._status.textContent !== text) {
      this._status.textContent = text;
    }
  };

  private readonly _options: ILogPaneOptions;
  private readonly _model: LogModel;
  private readonly _viewport: Viewport;
  private readonly _status: HTMLElement;
}
