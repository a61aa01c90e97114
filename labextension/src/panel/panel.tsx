/** The jobs panel: search, states, the cluster and the list. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import React from 'react';
import { everySecond, secondNow } from '../clock';
import { GROUPS, type Group, JobsModel } from './model';
import type { ISubmarine } from '../tokens';
import { JobList } from './list';
import { Queues } from './queues';

/** Delay after the last key before a search starts, in milliseconds. */
const SEARCH_DELAY = 250;
/** Pause between requests for the free resources while the panel is visible, in milliseconds. */
const CLUSTER_INTERVAL = 10_000;

export interface IJobsPanelOptions {
  readonly submarine: ISubmarine;
  readonly trans: TranslationBundle;
  readonly onOpen: (job: string) => void;
  readonly onMenu: (model: JobsModel, job: string, x: number, y: number) => void;
}

/** The content of the side bar's tab; loaded with the first use. */
export class JobsPanel extends ReactWidget {
  constructor(private readonly _options: IJobsPanelOptions) {
    super();
    this.addClass('jp-Submarine-jobs');
    this.model = new JobsModel(_options.submarine);
    this.model.changed.connect(() => {
      this.update();
    });
  }

  readonly model: JobsModel;

  override dispose(): void {
    this._pause();
    this.model.dispose();
    super.dispose();
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._resume();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    if (this.isVisible) {
      this._resume();
    }
  }

  protected override onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this._pause();
  }

  protected override onBeforeDetach(message: Message): void {
    this._pause();
    super.onBeforeDetach(message);
  }

  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this.node.querySelector('input')?.focus();
  }

  protected override render(): React.ReactElement {
    const { trans, onOpen, onMenu } = this._options;
    const { model } = this;
    return (
      <>
        <div className="jp-Submarine-jobs-search" role="search" aria-label={trans.__('Of jobs')}>
          <input
            type="search"
            placeholder={trans.__('Search jobs')}
            aria-label={trans.__('Search jobs')}
            maxLength={200}
            onChange={event => {
              this._search(event.target.value);
            }}
            onKeyDown={event => {
              if (event.key === 'ArrowDown') {
                event.preventDefault();
                this.node.querySelector<HTMLElement>('[role=listbox]')?.focus();
              }
            }}
          />
          {this._states()}
        </div>
        <Queues model={model} trans={trans} />
        {this._message()}
        <JobList
          model={model}
          trans={trans}
          now={secondNow()}
          onOpen={onOpen}
          onMenu={(job, x, y) => {
            onMenu(model, job, x, y);
          }}
        />
        <div className="jp-Submarine-jobs-count" role="status">
          {trans._n('%1 job', '%1 jobs', model.total)}
        </div>
      </>
    );
  }

  private _states(): React.ReactElement {
    const { trans } = this._options;
    const names: Record<Group, string> = {
      all: trans.__('All states'),
      active: trans.__('Running or waiting'),
      succeeded: trans.__('Succeeded'),
      failed: trans.__('Failed or lost'),
      cancelled: trans.__('Cancelled')
    };
    return (
      <select
        aria-label={trans.__('States')}
        value={this.model.query.group}
        onChange={event => {
          const group = event.target.value;
          if (isGroup(group)) {
            void this.model.search({ ...this.model.query, group });
          }
        }}
      >
        {Object.entries(names).map(([group, name]) => (
          <option key={group} value={group}>
            {name}
          </option>
        ))}
      </select>
    );
  }

  /** The problem, or a text for an empty list. */
  private _message(): React.ReactElement | null {
    const { trans } = this._options;
    const { problem, rows, loading, query } = this.model;
    if (problem !== '') {
      return (
        <p className="jp-Submarine-jobs-problem" role="alert">
          {problem}{' '}
          <button
            type="button"
            className="jp-Submarine-jobs-button"
            onClick={() => {
              void this.model.reload();
            }}
          >
            {trans.__('Try again')}
          </button>
        </p>
      );
    }
    if (rows.length > 0 || loading) {
      return null;
    }
    const searched = query.text !== '' || query.group !== 'all';
    return (
      <p className="jp-Submarine-jobs-empty">
        {searched
          ? trans.__('No job matches. Shorten the search text or choose all states.')
          : trans.__('No jobs yet. Put %1 at the top of a cell and run it.', '%%submarine run')}
      </p>
    );
  }

  private _search(text: string): void {
    clearTimeout(this._searchTimer);
    this._searchTimer = setTimeout(() => {
      void this.model.search({ ...this.model.query, text });
    }, SEARCH_DELAY);
  }

  private _resume(): void {
    this.model.visible = true;
    this._stopClock ??= everySecond(() => {
      this.update();
    });
    this._clusterTimer ??= setInterval(() => {
      if (!document.hidden) {
        void this.model.refreshCluster();
      }
    }, CLUSTER_INTERVAL);
  }

  private _pause(): void {
    this.model.visible = false;
    this._stopClock?.();
    clearInterval(this._clusterTimer);
    clearTimeout(this._searchTimer);
    this._stopClock = this._clusterTimer = undefined;
  }

  private _stopClock: (() => void) | undefined;
  private _clusterTimer: ReturnType<typeof setInterval> | undefined;
  private _searchTimer: ReturnType<typeof setTimeout> | undefined;
}

function isGroup(text: string): text is Group {
  return Object.hasOwn(GROUPS, text);
}
