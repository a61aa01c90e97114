/** The toolbar of the log view: selection of logs, appearance, download. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';
import { downloadIcon } from '@jupyterlab/ui-components';
import type { ILogInfo } from '../../api/types';
import { size } from '../../format';
import { openMenu } from '../../menus';
import { button, Choice, Toggle } from './controls';
import { compareNames, selectLogs, streamOf, STREAMS, type IFilter } from '../lines/sources';

/** Appearance of lines. */
export interface IAppearance {
  readonly wrap: boolean;
  readonly times: boolean;
}

export interface IToolbarOptions {
  readonly trans: TranslationBundle;
  readonly filter: IFilter;
  readonly appearance: IAppearance;
  readonly follow: boolean;
  readonly onFilter: (filter: IFilter) => void;
  readonly onAppearance: (appearance: IAppearance) => void;
  readonly onFollow: (follow: boolean) => void;
  readonly onNextError: (backward: boolean) => void;
  readonly downloadUrl: (log: ILogInfo) => string;
}

/** Maximum number of logs in the download menu. */
const MAX_LISTED = 40;

export class Toolbar {
  constructor(
    private readonly _options: IToolbarOptions,
    search: HTMLElement
  ) {
    const { trans, appearance } = _options;
    this._filter = _options.filter;
    this.node = document.createElement('div');
    this.node.className = 'jp-Submarine-log-toolbar';
    this._task = new Choice(trans.__('Task'), task => {
      this._set({ ...this._filter, task });
    });
    this._attempt = new Choice(trans.__('Attempt'), attempt => {
      this._set({ ...this._filter, attempt });
    });
    this._stream = new Choice(trans.__('Stream'), value => {
      this._set({ ...this._filter, stream: streamOf(value) ?? '' });
    });
    this._follow = new Toggle(
      trans.__('Follow'),
      trans.__('Show new lines as they arrive (End)'),
      _options.follow,
      _options.onFollow
    );
    this._wrap = new Toggle(trans.__('Wrap'), trans.__('Wrap long lines'), appearance.wrap, () => {
      this._onAppearance();
    });
    this._times = new Toggle(
      trans.__('Times'),
      trans.__('Show the times of lines where they are known'),
      appearance.times,
      () => {
        this._onAppearance();
      }
    );
    const nextError = button(trans.__('Next error'), trans.__('Go to the next error (F8)'), () => {
      _options.onNextError(false);
    });
    const download = button(downloadIcon, trans.__('Download'), () => {
      this._download(download);
    });
    const selections = [this._task.node, this._attempt.node, this._stream.node];
    const appearanceControls = [this._follow.node, this._wrap.node, this._times.node, download];
    this.node.append(...selections, search, nextError, ...appearanceControls);
    this.update([]);
  }

  readonly node: HTMLElement;

  /** Show a filter without calling `onFilter`. */
  set filter(filter: IFilter) {
    this._filter = filter;
    this.update(this._logs);
  }

  set follow(follow: boolean) {
    this._follow.pressed = follow;
  }

  /** Set the available logs. */
  update(logs: readonly ILogInfo[]): void {
    const { trans } = this._options;
    const { task, attempt, stream } = this._filter;
    this._logs = logs;
    const tasks = [...new Set([...logs.map(log => log.task), ...(task === '' ? [] : [task])])];
    tasks.sort(compareNames);
    this._task.set(
      [['', trans.__('All tasks')], ...tasks.map(name => [name, name] as const)],
      task
    );
    const ofTask = logs.filter(log => task === '' || log.task === task);
    const attempts = [...new Set(ofTask.map(log => log.attempt))].sort(compareNames).reverse();
    const known = attempts.map(name => [name, name] as const);
    const entries = [
      ['latest', trans.__('Latest attempt')],
      ['', trans.__('All attempts')]
    ] as const;
    this._attempt.set([...entries, ...known], attempt);
    this._attempt.node.hidden = attempts.length < 2 && attempt === 'latest';
    const helped = stream === 'helper' || ofTask.some(log => log.stream === 'helper');
    const streams = helped ? STREAMS : STREAMS.slice(0, 2);
    const all = ['', helped ? trans.__('All streams') : trans.__('Both streams')] as const;
    this._stream.set([all, ...streams.map(name => [name, name] as const)], stream);
  }

  private _set(filter: IFilter): void {
    this._filter = filter.task === this._filter.task ? filter : { ...filter, attempt: 'latest' };
    this.update(this._logs);
    this._options.onFilter(this._filter);
  }

  private _onAppearance(): void {
    this._options.onAppearance({ wrap: this._wrap.pressed, times: this._times.pressed });
  }

  private _download(at: HTMLElement): void {
    const logs = selectLogs(this._logs, this._filter).filter(log => log.length > 0);
    const [only] = logs;
    if (only !== undefined && logs.length === 1) {
      this._save(only);
      return;
    }
    const commands = new CommandRegistry();
    const menu = new Menu({ commands });
    logs.slice(0, MAX_LISTED).forEach((log, index) => {
      const command = `download-${index}`;
      const label = `${log.task} ${log.attempt} ${log.stream} (${size(log.length)})`;
      commands.addCommand(command, {
        label,
        execute: () => {
          this._save(log);
        }
      });
      menu.addItem({ command });
    });
    this._addRest(commands, menu, logs.length);
    const box = at.getBoundingClientRect();
    openMenu(menu, box.left, box.bottom, at);
  }

  private _addRest(commands: CommandRegistry, menu: Menu, count: number): void {
    const { trans } = this._options;
    if (count > 0 && count <= MAX_LISTED) {
      return;
    }
    const label =
      count === 0
        ? trans.__('Nothing to download yet')
        : trans.__('%1 more logs: choose a task first', count - MAX_LISTED);
    commands.addCommand('rest', { label, execute: () => undefined, isEnabled: () => false });
    menu.addItem({ command: 'rest' });
  }

  private _save(log: ILogInfo): void {
    const link = document.createElement('a');
    link.href = this._options.downloadUrl(log);
    link.download = '';
    link.rel = 'noopener';
    link.click();
  }

  private _filter: IFilter;
  private _logs: readonly ILogInfo[] = [];
  private readonly _task: Choice;
  private readonly _attempt: Choice;
  private readonly _stream: Choice;
  private readonly _follow: Toggle;
  private readonly _wrap: Toggle;
  private readonly _times: Toggle;
}
